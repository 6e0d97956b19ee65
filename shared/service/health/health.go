// Package health checks a service's dependencies. Concurrent callers share probes and cached results.
package health

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/fault"
)

type Probe struct {
	// What names the dependency in log messages.
	What string
	// Reason is the message for clients. It must not contain paths.
	Reason string
	// Check should honor its context. A probe that hangs counts as failed.
	Check func(context.Context) error
}

const (
	// every is how long a result is valid.
	every  = 5 * time.Second
	within = 5 * time.Second
	// maxWait limits how long a caller waits for a running probe.
	maxWait = 3 * time.Second
)

// Checker runs the probes on demand.
type Checker struct {
	probes                 []Probe
	logger                 *slog.Logger
	every, within, maxWait time.Duration

	mu sync.Mutex
	// round is closed when the current run of the probes has ended.
	round        chan struct{}
	begun, ended time.Time
	answer       error
}

func New(logger *slog.Logger, probes ...Probe) *Checker {
	return &Checker{probes: probes, logger: logger, every: every, within: within, maxWait: maxWait}
}

// Check returns nil if all probes succeeded within the last few seconds. Errors: fault.Unavailable,
// with the reason of the first failure. The cause is logged once.
func (c *Checker) Check(ctx context.Context) error {
	c.mu.Lock()
	if c.round == nil {
		if !c.ended.IsZero() && time.Since(c.ended) < c.every {
			defer c.mu.Unlock()
			return c.answer
		}
		c.round, c.begun = make(chan struct{}), time.Now()
		go c.probe(c.round)
	}
	round, begun := c.round, c.begun
	c.mu.Unlock()

	timer := time.NewTimer(min(c.maxWait, max(0, c.within-time.Since(begun))))
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
		return c.answer // the previous result, until there is a new one
	}
	return fault.New(fault.Unavailable, "The storage does not respond.")
}

// probe returns within c.within, unless a system call blocks a probe for longer.
func (c *Checker) probe(round chan struct{}) {
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
			c.logger.Info("the service has recovered")
		} else {
			c.logger.Error("the service is unavailable", "reason", reason, "error", cause)
		}
	}
	c.answer, c.ended, c.round = answer, time.Now(), nil
	close(round)
}

// first returns the first failure: a reason to show to clients, and the cause.
func (c *Checker) first(ctx context.Context) (reason string, cause error) {
	for _, probe := range c.probes {
		err := probe.run(ctx)
		switch {
		case err == nil:
			continue
		case fault.Is(err, fault.StorageFull):
			return "The disk is full.", fmt.Errorf("%s: %w", probe.What, err)
		}
		return probe.Reason, fmt.Errorf("%s: %w", probe.What, err)
	}
	return "", nil
}

// run calls Check. It treats a panic as a failure.
func (p Probe) run(ctx context.Context) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	return p.Check(ctx)
}
