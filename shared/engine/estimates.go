package engine

import (
	"context"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
)

// Estimator is an [Engine] that tells how long its edits take.
type Estimator interface {
	// Estimates returns how long edits take, in the order of the questions; nil for
	// those that the engine does not know of. What it returns may change with each
	// edit that it makes.
	Estimates(ctx context.Context, asked []Question) ([]*job.Estimate, error)
}

// Question asks how long edits of a kind take.
type Question struct {
	job.EditKind
	Kind catalog.Kind
	// Size and FPS are as in [Spec].
	Size catalog.Size
	FPS  int
	// Lengths are the lengths in question in seconds, ascending; a single 0 for an
	// image.
	Lengths []float64
}

// EstimatorOf returns the engine as an [Estimator], nil if it is none.
func EstimatorOf(e Engine) Estimator {
	estimator, _ := e.(Estimator)
	return estimator
}
