package engine

import (
	"context"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

type Estimator interface {
	// Estimates returns one estimate per question, in the same order. An unknown estimate is nil.
	Estimates(ctx context.Context, asked []Question) ([]*job.Estimate, error)
}

type Question struct {
	job.EditKind
	Kind catalog.Kind
	Size catalog.Size
	FPS  int
	// Lengths are in seconds, in ascending order. An image has a single length, 0.
	Lengths []float64
}

func EstimatorOf(e Engine) Estimator {
	estimator, _ := e.(Estimator)
	return estimator
}
