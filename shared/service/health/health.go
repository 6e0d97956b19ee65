// Package health tells whether a service can do its work, by probes that are few
// however many ask: their answer is shared, and kept for a while.
package health

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

// Probe looks at one thing that the service cannot do without.
type Probe struct {
	// What names it in the log.
	What string
	// Reason is what strangers are told where it fails; it holds no path.
	Reason string
	// Look returns an error where it fails. It keeps to its context as far as it
	// can; one that hangs all the same has failed.
	Look func(context.Context) error
}

const (
	// every is how long an answer is good for.
	every = 5 * time.Second
	// within is how long the probes may take.
	within = 5 * time.Second
	// patience is how long who asks waits for an answer that is being found.
	patience = 3 * time.Second
)

// Checker runs probes when it is asked. At most one round of them runs at a time.
type Checker struct {
	probes []Probe
	logger *slog.Logger
	// every, within and patience are the constants, but for tests.
	every, within, patience time.Duration

	mu sync.Mutex
	// round is closed when the probes that run have come to their end; nil while
	// none run.
	round        chan struct{}
	begun, ended time.Time
	answer       error
}

// New makes a checker.
func New(logger *slog.Logger, probes ...Probe) *Checker {
	return &Checker{probes: probes, logger: logger, every: every, within: within, patience: patience}
}

// Check returns nil where all probes found what they look at in order, a few
// seconds ago at most.
//
// Errors: fault.Unavailable, with the reason of the first that did not. The log
// has the cause, once.
func (c *Checker) Check(ctx context.Context) error {
	c.mu.Lock()
	if c.round == nil {
		if !c.ended.IsZero() && time.Since(c.ended) < c.every {
			defer c.mu.Unlock()
			return c.answer
		}
		c.round, c.begun = make(chan struct{}), time.Now()
		go c.look(c.round)
	}
	round, begun := c.round, c.begun
	c.mu.Unlock()

	timer := time.NewTimer(min(c.patience, max(0, c.within-time.Since(begun))))
	defer timer.Stop()
	select {
	case <-round:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.answer
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.round == nil || !c.ended.IsZero() && time.Since(begun) < c.within {
		return c.answer // the last one, while it is not known better
	}
	return fault.New(fault.Unavailable, "The storage does not answer.")
}

// look runs the probes, and ends with them: within its context, but where the
// system holds one of them up for longer.
func (c *Checker) look(round chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), c.within)
	defer cancel()
	var answer error
	reason, cause := c.first(ctx)
	if cause != nil {
		answer = fault.New(fault.Unavailable, "%s", reason)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if (answer == nil) != (c.answer == nil) {
		if answer == nil {
			c.logger.Info("the service is well again")
		} else {
			c.logger.Error("the service cannot do its work", "reason", reason, "error", cause)
		}
	}
	c.answer, c.ended, c.round = answer, time.Now(), nil
	close(round)
}

// first gives the first failure of a probe: what strangers are told, and why.
func (c *Checker) first(ctx context.Context) (reason string, cause error) {
	for _, probe := range c.probes {
		err := probe.run(ctx)
		switch {
		case err == nil:
			continue
		case fault.Is(err, fault.StorageFull):
			return "There is no room left to write.", fmt.Errorf("%s: %w", probe.What, err)
		}
		return probe.Reason, fmt.Errorf("%s: %w", probe.What, err)
	}
	return "", nil
}

// run is Look, and takes a panic of it for a failure.
func (p Probe) run(ctx context.Context) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	return p.Look(ctx)
}
