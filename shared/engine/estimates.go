package engine

import (
	"context"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

type Estimator interface {
	// Estimates returns run times in the order of the questions, and nil for unknown ones.
	Estimates(ctx context.Context, asked []Question) ([]*job.Estimate, error)
}

type Question struct {
	job.EditKind
	Kind catalog.Kind
	Size catalog.Size
	FPS  int
	// Lengths are in seconds, ascending; a single 0 for an image.
	Lengths []float64
}

func EstimatorOf(e Engine) Estimator {
	estimator, _ := e.(Estimator)
	return estimator
}
