package limit

import (
	"context"
	"sync"
	"time"
)

// Window counts exactly what falls within any span of time: of a rate's Burst
// that many are allowed within any Burst/PerSecond seconds, and the next one as
// soon as the oldest of them is that old. A Limiter, which refills, allows
// nearly twice as many within a span that begins with none used.
//
// It keeps a time for each that is allowed, so it is for small bursts.
type Window struct {
	now func() time.Time

	mu        sync.Mutex
	taken     map[string]*takes
	forgotten time.Time
}

// takes are the times of what a name was allowed within the last span, oldest
// first.
type takes struct {
	span  time.Duration
	times []time.Time
}

// NewWindow makes a window with a clock.
func NewWindow(now func() time.Time) *Window {
	return &Window{now: now, taken: map[string]*takes{}, forgotten: now()}
}

// Take counts n where they are allowed at once, and tells where the name then
// stands. The error is always nil; it is there for counts that are kept
// elsewhere.
func (w *Window) Take(_ context.Context, name string, n int, r Rate) (State, error) {
	if r.PerSecond <= 0 {
		return unlimited(), nil
	}
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now)
	t := w.taken[name]
	if t == nil {
		t = &takes{}
		w.taken[name] = t
	}
	t.span = seconds(float64(r.Burst) / r.PerSecond)
	t.forget(now)
	state := State{Allowed: len(t.times)+n <= r.Burst}
	if state.Allowed {
		for range n {
			t.times = append(t.times, now)
		}
	}
	state.Remaining = r.Burst - len(t.times)
	if len(t.times) > 0 {
		state.Reset = t.span - now.Sub(t.times[len(t.times)-1])
	}
	if state.Remaining <= 0 && len(t.times) > 0 {
		state.RetryAfter = t.span - now.Sub(t.times[0])
	}
	return state, nil
}

// forget drops the times that are a span old.
func (t *takes) forget(now time.Time) {
	old := 0
	for old < len(t.times) && now.Sub(t.times[old]) >= t.span {
		old++
	}
	t.times = append(t.times[:0], t.times[old:]...)
}

// forget drops the names that have nothing left.
func (w *Window) forget(now time.Time) {
	if now.Sub(w.forgotten) < forgetEvery {
		return
	}
	w.forgotten = now
	for name, t := range w.taken {
		if t.forget(now); len(t.times) == 0 {
			delete(w.taken, name)
		}
	}
}
