package engine

import (
	"context"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

type Estimator interface {
	// Estimates returns one run time per question, in the same order, with nil if unknown.
	Estimates(ctx context.Context, asked []Question) ([]*job.Estimate, error)
}

type Question struct {
	job.EditKind
	Kind catalog.Kind
	Size catalog.Size
	FPS  int
	// Lengths are in seconds, ascending; an image has a single 0.
	Lengths []float64
}

func EstimatorOf(e Engine) Estimator {
	estimator, _ := e.(Estimator)
	return estimator
}
