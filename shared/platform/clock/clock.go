// Package clock derives the time of day from elapsed time, and follows the machine's clock cautiously. People and
// networks may set that clock, briefly or permanently, and a wrong time in records stays wrong.
//
// A clock continues from its last time. It logs a step of the machine's clock immediately, but follows the step only
// after Hold, and never if the step is larger than Absurd. For Quiet after a step, the clock is not settled: nothing
// should be deleted because of its age.
package clock

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// Hold is how long a step must last before the clock follows it.
	Hold  = 10 * time.Minute
	Quiet = 10 * time.Minute
	// Absurd is the step size above which the clock never follows.
	Absurd = 366 * 24 * time.Hour
	// drift is the largest difference that is followed immediately and does not count as a step.
	drift = time.Second
	// If the machine was off for longer than this, the clock is not settled at first.
	longAway = 24 * time.Hour
	// checkEvery is how often to check for steps. keepEvery is how often to store the time for the next start.
	checkEvery, keepEvery = time.Second, time.Minute
)

type Config struct {
	Wall func() time.Time
	// Elapsed returns the time since the machine booted, including sleep; Boot identifies the boot.
	Elapsed func() time.Duration
	Boot    string
	// Path is the file that stores the time for the next start.
	Path   string
	Logger *slog.Logger
}

// A Clock's times have no monotonic reading, so that differences between them follow this clock.
type Clock struct {
	Config
	file *os.File

	mu sync.Mutex
	// base is the time of day when the elapsed time was equal to start.
	base  time.Time
	start time.Duration
	// step is the machine's clock minus this clock, or 0. stepped is when it last changed.
	step       time.Duration
	stepped    time.Duration
	quiet      bool
	complained time.Duration
}

// Open returns a clock that continues from the time that the previous run stored. It fails if the
// machine's clock is far from that time or impossibly early, or if the file cannot be read.
func Open(c Config) (*Clock, error) {
	k := &Clock{Config: c}
	k.start, k.base = k.read()
	last, kept, err := readLast(c.Path)
	if err != nil {
		return nil, err
	}
	wall := k.base
	if wall.Before(earliest) {
		return nil, fmt.Errorf("the machine's clock is impossible: %s; set the clock", wall.UTC().Format(time.RFC3339))
	}
	if kept {
		if err := k.resume(last, wall); err != nil {
			return nil, err
		}
	}
	if k.file, err = os.OpenFile(c.Path, os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		// The disk may be full. The next start then has only an older time, which is harmless.
		c.Logger.Warn("cannot store the time for the next start", "error", err)
		k.file = nil
	}
	k.keep()
	return k, nil
}

// Any earlier time is wrong, because this program did not exist.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (k *Clock) resume(last last, wall time.Time) error {
	expected := last.time
	if last.boot == k.Boot {
		expected = expected.Add(max(k.start-last.elapsed, 0))
	}
	ahead := wall.Sub(expected)
	switch {
	case last.boot == k.Boot && ahead.Abs() > drift, ahead < -drift:
		// This is a step of the machine's clock: either the machine was not switched off, or its clock moved back.
		k.base = expected
		k.notice(ahead, k.start)
	case ahead > Absurd:
		return fmt.Errorf("the machine's clock is %s, but the server last ran on %s: set the clock, or, if it is right,"+
			"delete %s and start again",
			wall.UTC().Format(time.RFC3339), last.time.UTC().Format(time.RFC3339), k.Path)
	case ahead > longAway:
		k.stepped, k.quiet = k.start, true
		k.Logger.Info("the machine was off for a long time, according to its clock: nothing is deleted for a while", "off",
			ahead.Round(time.Second), "for", Quiet)
	}
	return nil
}

func (k *Clock) Now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at(k.Elapsed())
}

// read reads both clocks. It repeats this if the process was delayed between the two reads.
func (k *Clock) read() (elapsed time.Duration, wall time.Time) {
	const tries, apart = 10, 100 * time.Millisecond
	for range tries {
		elapsed = k.Elapsed()
		wall = k.Wall().Round(0)
		if k.Elapsed()-elapsed < apart {
			break
		}
	}
	return elapsed, wall
}

func (k *Clock) at(elapsed time.Duration) time.Time { return k.base.Add(elapsed - k.start) }

// Settled reports whether the clock can be trusted for expiry.
func (k *Clock) Settled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	elapsed, wall := k.read()
	if k.quiet && elapsed-k.stepped >= Quiet {
		k.quiet = false
	}
	return !k.quiet && k.step == 0 && wall.Sub(k.at(elapsed)).Abs() <= drift
}

// Run checks for steps until the context ends, and then stores the time. When it follows a step, it calls the
// function `follow` so that stored records can be adjusted. It does so before a step forward, and after a step back,
// so that records never look older than they are. The clock follows the step only if the function returns nil.
func (k *Clock) Run(ctx context.Context, follow func(ctx context.Context, by time.Duration) error) {
	look, keep := time.NewTicker(checkEvery), time.NewTicker(keepEvery)
	defer look.Stop()
	defer keep.Stop()
	for {
		select {
		case <-ctx.Done():
			k.keep()
			return
		case <-keep.C:
			k.keep()
		case <-look.C:
			if err := k.Check(ctx, follow); err != nil && ctx.Err() == nil {
				k.Logger.Error("cannot follow the machine's clock", "error", err)
			}
		}
	}
}

// Check compares the clocks once. Run calls it every second.
func (k *Clock) Check(ctx context.Context, follow func(ctx context.Context, by time.Duration) error) error {
	by := k.compare()
	if by == 0 {
		return nil
	}
	if by > 0 {
		if err := follow(ctx, by); err != nil {
			return err
		}
	}
	k.move(by)
	if by < 0 {
		if err := follow(ctx, by); err != nil {
			k.move(-by)
			return err
		}
	}
	k.Logger.Warn("the server's clock now follows the machine's clock", "step", by.Round(time.Millisecond))
	return nil
}

func (k *Clock) compare() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	elapsed, wall := k.read()
	ahead := wall.Sub(k.at(elapsed))
	switch {
	case ahead.Abs() <= drift:
		if k.step != 0 {
			k.Logger.Warn("the machine's clock is correct again")
			k.step, k.stepped, k.quiet = 0, elapsed, true
		}
		k.base = k.base.Add(ahead)
	case (ahead - k.step).Abs() > drift:
		k.notice(ahead, elapsed)
	case ahead.Abs() > Absurd:
		if elapsed-k.complained >= time.Hour {
			k.complained = elapsed
			k.Logger.Error("the machine's clock is wrong; set it", "machine", k.Wall().UTC(), "server",
				k.at(elapsed).UTC())
		}
	case elapsed-k.stepped >= Hold:
		return ahead
	}
	return 0
}

func (k *Clock) notice(ahead, elapsed time.Duration) {
	k.step, k.stepped, k.quiet = ahead, elapsed, true
	direction := "forward"
	if ahead < 0 {
		direction = "back"
	}
	k.Logger.Warn("the machine's clock was set "+direction+": the server keeps its own time, and deletes nothing for now",
		"by", ahead.Round(time.Millisecond).Abs(), "machine", k.Wall().UTC(), "server", k.at(elapsed).UTC())
}

func (k *Clock) move(by time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.base = k.base.Add(by)
	k.step, k.stepped, k.quiet = 0, k.Elapsed(), true
}
