package job

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// EstimateStore keeps the engine's latest estimates of edit times, because the process that accepts
// jobs may be unable to reach the engine. The suite in jobtest specifies it; every adapter runs it.
type EstimateStore interface {
	EstimateReader
	EstimatePublisher
}

type EstimateReader interface {
	// Estimates returns the latest published estimates, possibly none. A read may miss estimates of the
	// last second.
	Estimates(ctx context.Context) (Estimates, error)
}

type EstimatePublisher interface {
	// PublishEstimates replaces the published estimates. An empty list removes them.
	PublishEstimates(ctx context.Context, estimates Estimates, now time.Time) error
}

// EditKind has the properties of a job that its run time depends on in addition to the clip's length.
type EditKind struct {
	// Model is the canonical id.
	Model string `json:"model"`
	// Resolution is the option of the form.
	Resolution string `json:"resolution,omitempty"`
	// Reference is true for jobs with a reference image.
	Reference bool `json:"reference,omitempty"`
}

// Estimates has an estimate for each kind of edit that an engine knows.
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
	// Points are edits of known length, at least one, in the order of lengths. For an image the
	// length is 0.
	Points []EstimatePoint `json:"points"`
	// Slack is the factor by which an estimate may exceed the available time before the edit is
	// refused, because estimates are inexact.
	Slack float64 `json:"slack"`
}

// EstimatePoint is an edit's length and its run time, both in seconds.
type EstimatePoint struct {
	Length float64 `json:"length"`
	Takes  float64 `json:"takes"`
}

const (
	maxPoints = 64
	// MaxTakes limits the run time of a point, in seconds: a day. Longer times are reported as this.
	MaxTakes = 24 * 60 * 60
	maxSlack = 10
)

// Validate checks the estimate, because an engine is a separate program.
func (e Estimate) Validate() error {
	if len(e.Points) == 0 || len(e.Points) > maxPoints {
		return fmt.Errorf("the estimate of %s has %d points", e.Model, len(e.Points))
	}
	if !(e.Slack >= 1 && e.Slack <= maxSlack) {
		return fmt.Errorf("the slack of the estimate of %s is %v", e.Model, e.Slack)
	}
	for i, point := range e.Points {
		if !(point.Takes >= 0 && point.Takes <= MaxTakes) || !(point.Length >= 0) ||
			i > 0 && point.Length <= e.Points[i-1].Length {
			return fmt.Errorf("point %d of the estimate of %s is %v", i, e.Model, point)
		}
	}
	return nil
}

// Takes returns the run time for a length by linear interpolation between points, or extrapolation
// from the nearest two.
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

// TooLong reports whether an edit of the length is expected not to end within the time.
func (e Estimate) TooLong(length, within time.Duration) bool {
	return e.Takes(length).Seconds() > within.Seconds()*e.Slack
}

// Longest returns the longest clip of whole seconds, shorter than length, whose edit is expected to
// end within the time, or 0.
func (e Estimate) Longest(length, within time.Duration) time.Duration {
	longest := length.Truncate(time.Second)
	for longest > 0 && e.TooLong(longest, within) {
		longest -= time.Second
	}
	return longest
}

const (
	// estimatesFor is how long a service caches estimates. noneFor is how long it caches that there
	// are no estimates, because a worker may be about to start.
	estimatesFor = 30 * time.Second
	noneFor      = time.Second
)

// Estimate returns the engine's latest estimate for the kind. known is false if it is missing or cannot
// be read.
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
			// The engine also refuses edits that take too long, only later.
			s.config.Logger.WarnContext(ctx, "cannot read how long edits take", "error", err)
		} else {
			s.estimates = estimates
		}
		s.estimatedAt = now
	}
	return s.estimates.Of(kind)
}
