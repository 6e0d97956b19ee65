package job

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// EstimateStore keeps the engine's estimates of edit times, because the process that accepts jobs
// may be unable to reach the engine.
type EstimateStore interface {
	EstimateReader
	EstimatePublisher
}

type EstimateReader interface {
	// The result may lack estimates that were published within the last second.
	Estimates(ctx context.Context) (Estimates, error)
}

type EstimatePublisher interface {
	// Publishing an empty list removes the published estimates.
	PublishEstimates(ctx context.Context, estimates Estimates, now time.Time) error
}

// EditKind identifies edits that take equally long for the same clip length.
type EditKind struct {
	Model      string `json:"model"` // canonical id
	Resolution string `json:"resolution,omitempty"`
	Reference  bool   `json:"reference,omitempty"` // whether the edit has a reference image
}

type Estimates []Estimate

func (e Estimates) Of(kind EditKind) (Estimate, bool) {
	i := slices.IndexFunc(e, func(one Estimate) bool { return one.EditKind == kind })
	if i < 0 {
		return Estimate{}, false
	}
	return e[i], true
}

type Estimate struct {
	EditKind
	// Points lists at least one edit, in order of length. The length of an image is 0.
	Points []EstimatePoint `json:"points"`
}

// EstimatePoint is the length of an edit and its run time, both in seconds.
type EstimatePoint struct {
	Length float64 `json:"length"`
	Takes  float64 `json:"takes"`
}

const (
	maxPoints = 64
	// MaxTakes is the maximum run time of a point in seconds.
	MaxTakes = 24 * 60 * 60
)

// Validate checks an estimate received from an engine, which is a separate program.
func (e Estimate) Validate() error {
	if len(e.Points) == 0 || len(e.Points) > maxPoints {
		return fmt.Errorf("the estimate of %s has %d points, want 1 to %d", e.Model, len(e.Points), maxPoints)
	}
	for i, point := range e.Points {
		if !(point.Takes >= 0 && point.Takes <= MaxTakes) || !(point.Length >= 0) ||
			i > 0 && point.Length <= e.Points[i-1].Length {
			return fmt.Errorf("point %d of the estimate of %s is invalid: %v", i, e.Model, point)
		}
	}
	return nil
}

// Takes interpolates the run time between points. Outside their range, it extrapolates from the nearest two.
func (e Estimate) Takes(length time.Duration) time.Duration {
	seconds := e.Points[0].Takes
	if len(e.Points) > 1 {
		after := 1
		for after < len(e.Points)-1 && e.Points[after].Length < length.Seconds() {
			after++
		}
		a, b := e.Points[after-1], e.Points[after]
		seconds = a.Takes + (b.Takes-a.Takes)*(length.Seconds()-a.Length)/(b.Length-a.Length)
	}
	return time.Duration(min(max(seconds, 0), MaxTakes) * float64(time.Second))
}

// TooLong reports whether the edit would probably take longer than the given time.
func (e Estimate) TooLong(length, within time.Duration) bool {
	return e.Takes(length) > within
}

// Longest returns the greatest length below the given one, in whole seconds, at which the edit would probably end in
// time. It returns 0 if there is no such length.
func (e Estimate) Longest(length, within time.Duration) time.Duration {
	longest := length.Truncate(time.Second)
	for longest > 0 && e.TooLong(longest, within) {
		longest -= time.Second
	}
	return longest
}

const (
	// estimatesFor is how long estimates are cached. An empty list is cached for noneFor, because a
	// worker may start soon.
	estimatesFor = 30 * time.Second
	noneFor      = time.Second
)

// Estimate returns false if the estimate is missing or cannot be read.
func (s *Service) Estimate(ctx context.Context, kind EditKind) (Estimate, bool) {
	if s.config.Estimates == nil {
		return Estimate{}, false
	}
	s.estimating.Lock()
	defer s.estimating.Unlock()
	remembered := estimatesFor
	if len(s.estimates) == 0 {
		remembered = noneFor
	}
	if now := s.config.Now(); s.estimatedAt.IsZero() || now.Sub(s.estimatedAt).Abs() >= remembered {
		estimates, err := s.config.Estimates.Estimates(ctx)
		if err != nil {
			// The engine also rejects edits that take too long, but later.
			s.config.Logger.WarnContext(ctx, "cannot read the estimates of edit times", "error", err)
		} else {
			s.estimates = estimates
		}
		s.estimatedAt = now
	}
	return s.estimates.Of(kind)
}
