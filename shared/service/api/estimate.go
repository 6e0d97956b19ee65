package api

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// estimate sets the job's expected edit time, if it can be estimated. clip is the input video's
// length, or 0. If the edit would take too long, it returns problems that name the longest clip
// that would finish (docs/contract/jobs.md#admission).
func (s *service) estimate(ctx context.Context, m *catalog.Model, j *job.Job, clip time.Duration) error {
	_, reference := j.Request.Inputs[catalog.ReferenceField]
	estimate, known := s.Jobs.Estimate(ctx, job.EditKind{
		Model: m.ID, Resolution: j.Request.Option(catalog.ResolutionField), Reference: reference,
	})
	length := lengthOf(m, clip)
	if !known || m.Kind != catalog.Image && length <= 0 {
		return nil
	}
	j.Estimate = estimate.Takes(length).Round(time.Millisecond)
	if clip <= 0 || !estimate.TooLong(clip, job.MaxAge) {
		return nil
	}
	message := fmt.Sprintf("The edit would take about %s, but a job may take at most %s.", spoken(j.Estimate), spoken(job.MaxAge))
	if longest := estimate.Longest(clip, job.MaxAge); longest > 0 {
		message += fmt.Sprintf(" The longest clip that would finish in time is %.0f s long.", longest.Seconds())
	}
	return problems{valueProblem(catalog.DataField, nil, message)}
}

func spoken(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f minutes", d.Minutes())
}
