package ratelimit

import (
	"context"
	"time"
)

// Window limits exactly what falls into any span of time: a rate's Burst within
// any Burst/PerSecond seconds, and the next one as soon as the oldest of them
// is that old. A Limiter refills continuously, and so allows nearly twice as
// many in the first span.
//
// It keeps a time for each count, so it is for small bursts.
type Window struct {
	now   func() time.Time
	names names[takes]
}

// takes are the times at which a name was allowed something within the last
// span, oldest first.
type takes struct {
	span  time.Duration
	times []time.Time
}

// NewWindow returns a window; now is the clock.
func NewWindow(now func() time.Time) *Window {
	return &Window{now: now, names: names[takes]{started: now()}}
}

// Take counts n if the rate allows them now, and returns the name's state. The
// error is always nil; other implementations, which count elsewhere, may fail.
func (w *Window) Take(_ context.Context, name string, n int, r Rate) (State, error) {
	if r.PerSecond <= 0 {
		return Unlimited(), nil
	}
	now := w.now()
	w.names.forget(now, func(t *takes) bool {
		t.times = within(t.times, now, t.span)
		return len(t.times) == 0
	})
	t := w.names.lock(name)
	defer t.Unlock()
	t.value.span = r.span()
	var state State
	t.value.times, state = r.Slide(t.value.times, now, n)
	return state, nil
}

// span returns for how long a count matters in a window.
func (r Rate) span() time.Duration { return r.time(float64(r.Burst)) }

// Slide counts n in a window whose times are kept elsewhere. Given the times at
// which a name was allowed something, oldest first, it returns the times to
// keep and the name's state.
func (r Rate) Slide(times []time.Time, now time.Time, n int) ([]time.Time, State) {
	span := r.span()
	times = within(times, now, span)
	state := State{Allowed: len(times)+n <= r.Burst}
	if state.Allowed {
		for range n {
			times = append(times, now)
		}
	}
	state.Remaining = r.Burst - len(times)
	if len(times) > 0 {
		state.Reset = span - now.Sub(times[len(times)-1])
	}
	if state.Remaining <= 0 && len(times) > 0 {
		state.RetryAfter = span - now.Sub(times[0])
	}
	return times, state
}

// within drops the times that are a span old or older.
func within(times []time.Time, now time.Time, span time.Duration) []time.Time {
	old := 0
	for old < len(times) && now.Sub(times[old]) >= span {
		old++
	}
	return append(times[:0], times[old:]...)
}
