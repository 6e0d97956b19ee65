package job

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// EstimateStore keeps how long edits take, as the workers' engine published it last.
// Whoever accepts jobs may be unable to reach the engine. Its behaviour is specified
// here and verified by the suite in jobtest, which every adapter runs.
type EstimateStore interface {
	EstimateReader
	EstimatePublisher
}

// EstimateReader reads how long edits take.
type EstimateReader interface {
	// Estimates returns what was published last, none if nothing was. A read may
	// miss what was published within the last second.
	Estimates(ctx context.Context) (Estimates, error)
}

// EstimatePublisher publishes how long edits take.
type EstimatePublisher interface {
	// PublishEstimates replaces what was published before; none removes it.
	PublishEstimates(ctx context.Context, estimates Estimates, now time.Time) error
}

// EditKind is what of a job its time depends on, besides the length of its clip.
type EditKind struct {
	// Model is the canonical id.
	Model string `json:"model"`
	// Resolution is the option of the form.
	Resolution string `json:"resolution,omitempty"`
	// Reference is true for jobs with a reference image.
	Reference bool `json:"reference,omitempty"`
}

// Estimates are how long edits take, one for each kind of edit that an engine knows of.
type Estimates []Estimate

// Of returns the estimate of a kind of edit.
func (e Estimates) Of(kind EditKind) (Estimate, bool) {
	i := slices.IndexFunc(e, func(one Estimate) bool { return one.EditKind == kind })
	if i < 0 {
		return Estimate{}, false
	}
	return e[i], true
}

// Estimate is how long edits of one kind take.
type Estimate struct {
	EditKind
	// Points are edits of known length, at least one, by length. An image has one
	// of no length.
	Points []EstimatePoint `json:"points"`
	// Slack is how many times as long as the time that there is an edit may be
	// expected to take without being refused: estimates are wrong by some.
	Slack float64 `json:"slack"`
}

// EstimatePoint is an edit of one length and how long it takes, both in seconds.
type EstimatePoint struct {
	Length float64 `json:"length"`
	Takes  float64 `json:"takes"`
}

const (
	// maxPoints bounds the points of an estimate.
	maxPoints = 64
	// MaxTakes bounds what one of them may take: a day, in seconds. What takes longer
	// is said to take that.
	MaxTakes = 24 * 60 * 60
	// maxSlack bounds the slack of an estimate.
	maxSlack = 10
)

// Validate reports what is wrong with the estimate: an engine is a program of its own.
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

// Takes returns how long an edit of the length takes: between two points on the line
// through them, outside of the points on that through the nearest two.
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

// TooLong reports whether an edit of the length cannot be expected to end within the
// time.
func (e Estimate) TooLong(length, within time.Duration) bool {
	return e.Takes(length).Seconds() > within.Seconds()*e.Slack
}

// Longest returns the longest clip of whole seconds, shorter than length, whose edit can
// be expected to end within the time; 0 if there is none.
func (e Estimate) Longest(length, within time.Duration) time.Duration {
	longest := length.Truncate(time.Second)
	for longest > 0 && e.TooLong(longest, within) {
		longest -= time.Second
	}
	return longest
}

const (
	// estimatesFor is how long a service remembers the estimates that it has read, and
	// noneFor how long that there were none: a worker may be about to start.
	estimatesFor = 30 * time.Second
	noneFor      = time.Second
)

// Estimate returns how long edits of the kind take, as the workers' engine told last.
// Nothing is known of it without an engine that tells, or while it cannot be read.
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
			// The engine refuses what would take too long as well, only later.
			s.config.Logger.WarnContext(ctx, "read how long edits take", "error", err)
		} else {
			s.estimates = estimates
		}
		s.estimatedAt = now
	}
	return s.estimates.Of(kind)
}
