package api

import (
	"context"
	"fmt"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// estimate sets the job's expected edit time, if it can be estimated. result is the length of the resulting video, or 0
// if it is unknown. If the edit would take too long, estimate returns problems that name the longest video that would
// finish (docs/contract/jobs.md#admission).
func (s *service) estimate(ctx context.Context, m *catalog.Model, j *job.Job, result time.Duration) error {
	_, reference := j.Request.Inputs[catalog.ReferenceField]
	estimate, known := s.Jobs.Estimate(ctx, job.EditKind{
		Model: m.ID, Resolution: j.Request.Option(catalog.ResolutionField), Reference: reference,
	})
	length := lengthOf(m, result)
	if !known || m.Kind != catalog.Image && length <= 0 {
		return nil
	}
	j.Estimate = estimate.Takes(length).Round(time.Millisecond)
	if result <= 0 || !estimate.TooLong(result, job.MaxAge) {
		return nil
	}
	message := fmt.Sprintf("The edit would take about %s, but a job may take at most %s.", spoken(j.Estimate), spoken(job.MaxAge))
	if longest := estimate.Longest(result, job.MaxAge); longest > 0 {
		message += fmt.Sprintf(" The longest video that would finish in time is %.0f s long.", longest.Seconds())
	}
	return problems{valueProblem(catalog.DataField, nil, message)}
}

func spoken(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f minutes", d.Minutes())
}
