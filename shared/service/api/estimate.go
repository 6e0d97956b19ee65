package api

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// estimate fills in how long the job's edit should take, if that is known. clip is the
// length of the video that is edited, 0 if there is none or it is not known.
//
// Errors: problems, if the edit cannot be expected to end in time; they name the longest
// clip whose edit can (docs/contract/jobs.md#admission).
func (s *service) estimate(ctx context.Context, m *catalog.Model, j *job.Job, clip time.Duration) error {
	_, reference := j.Request.Inputs[catalog.ReferenceField]
	estimate, known := s.Jobs.Estimate(ctx, job.EditKind{
		Model: m.ID, Resolution: j.Request.Option(catalog.ResolutionField), Reference: reference,
	})
	length := m.Duration
	if _, edits := j.Request.Inputs[catalog.DataField]; edits {
		length = clip
	}
	if !known || m.Kind != catalog.Image && length <= 0 {
		return nil
	}
	j.Estimate = estimate.Takes(length).Round(time.Millisecond)
	if clip <= 0 || !estimate.TooLong(clip, job.MaxAge) {
		return nil
	}
	message := fmt.Sprintf("The edit would take about %s, and a job has %s.", spoken(j.Estimate), spoken(job.MaxAge))
	if longest := estimate.Longest(clip, job.MaxAge); longest > 0 {
		message += fmt.Sprintf(" The longest clip that would be done in time has %.0f s.", longest.Seconds())
	}
	return problems{valueProblem(catalog.DataField, nil, message)}
}

// spoken returns a length of time for people.
func spoken(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f minutes", d.Minutes())
}
