package worker

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/panics"
)

const (
	// estimateEvery is the interval at which the engine's estimates are read.
	estimateEvery = time.Minute
	publishEvery  = 6 * time.Hour
)

// Estimating publishes the engine's estimates to the processes that accept jobs.
type Estimating struct {
	Engine    engine.Engine
	Catalog   *catalog.Catalog
	Publisher job.EstimatePublisher
	// Every is the interval at which estimates are read. 0 means a minute.
	Every  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// Run publishes estimates until the context ends. If the engine provides no estimates, Run removes
// published estimates.
func (e Estimating) Run(ctx context.Context) {
	estimator := engine.EstimatorOf(e.Engine)
	asked := questions(e.Catalog)
	var (
		published   job.Estimates
		publishedAt time.Time
		failing     bool
	)
	for ctx.Err() == nil {
		estimates, err := e.ask(ctx, estimator, asked)
		if err != nil && !failing && ctx.Err() == nil {
			// The engine may be starting, so keep its last estimates.
			e.Logger.Warn("cannot read the engine's estimates", "error", err)
		}
		failing = err != nil
		fresh := !publishedAt.IsZero() && e.Now().Sub(publishedAt).Abs() < publishEvery
		if err == nil && !(fresh && nearly(estimates, published)) {
			err := e.Publisher.PublishEstimates(ctx, estimates, e.Now())
			if err == nil {
				published, publishedAt = estimates, e.Now()
			} else if ctx.Err() == nil {
				e.Logger.Warn("cannot publish the engine's estimates", "error", err)
			}
		}
		if estimator == nil && !publishedAt.IsZero() {
			return
		}
		clock.Wait(ctx, cmp.Or(e.Every, estimateEvery))
	}
}

// An estimate is published immediately only if it changes by at least this fraction, because each write costs money.
const worthPublishing = 0.05

// nearly reports whether two sets of estimates are for the same edits and about equal.
func nearly(a, b job.Estimates) bool {
	return slices.EqualFunc(a, b, func(a, b job.Estimate) bool {
		return a.EditKind == b.EditKind && slices.EqualFunc(a.Points, b.Points, func(a, b job.EstimatePoint) bool {
			return a.Length == b.Length && math.Abs(a.Takes-b.Takes) <= worthPublishing*b.Takes
		})
	})
}

func (e Estimating) ask(
	ctx context.Context, estimator engine.Estimator, asked []engine.Question,
) (known job.Estimates, err error) {
	if estimator == nil {
		return nil, nil
	}
	defer panics.Error(&err)
	estimates, err := estimator.Estimates(ctx, asked)
	for _, estimate := range estimates {
		if estimate != nil {
			known = append(known, *estimate)
		}
	}
	return known, err
}

// estimatedLengths lists the clip lengths, in seconds, for which estimates are read. Between them,
// run times grow almost linearly.
var estimatedLengths = []float64{1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 90, 120, 180, 240, 300, 600}

func questions(c *catalog.Catalog) []engine.Question {
	var asked []engine.Question
	for _, m := range c.Models() {
		if m.Kind == catalog.ImageToVideo {
			continue // no engine with estimates makes such videos
		}
		lengths := []float64{m.Duration.Seconds()}
		if m.Kind != catalog.Image && m.Duration == 0 {
			lengths = slices.DeleteFunc(slices.Clone(estimatedLengths), func(length float64) bool {
				return length > c.Limits.VideoDuration.Seconds()
			})
			if longest := c.Limits.VideoDuration.Seconds(); len(lengths) == 0 || lengths[len(lengths)-1] < longest {
				lengths = append(lengths, longest)
			}
		}
		references := []bool{false}
		if _, takes := m.Form.Field(catalog.ReferenceField); takes {
			references = append(references, true)
		}
		for resolution, size := range m.Sizes {
			for _, reference := range references {
				asked = append(asked, engine.Question{
					EditKind: job.EditKind{Model: m.ID, Resolution: resolution, Reference: reference},
					Kind:     m.Kind, Size: size, FPS: m.FPS, Lengths: lengths,
				})
			}
		}
	}
	slices.SortStableFunc(asked, func(a, b engine.Question) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Resolution, b.Resolution))
	})
	return asked
}
