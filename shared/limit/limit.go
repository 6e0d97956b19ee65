// Package limit counts what accounts and keys use against the rates of a tier,
// such as requests per second with a burst, or tokens per minute (decisions.md,
// "Limits by tier").
//
// The count of [Limiter] lives in this process. On one machine that makes the
// rate exact; a service of several processes counts in its record store.
package limit

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate is how often something may be done: PerSecond in the long run, Burst at
// once. A rate of 0 per second is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// PerMinute is a rate of n a minute, all of which may come at once; 0 is no
// limit.
func PerMinute(n int) Rate { return Rate{PerSecond: float64(n) / 60, Burst: n} }

// State is where a name stands after a count.
type State struct {
	// Allowed reports whether what was counted is within the rate. What is not
	// does not count.
	Allowed bool
	// Remaining is how much more is allowed at once.
	Remaining int
	// Reset is how long until the whole burst is allowed again.
	Reset time.Duration
	// RetryAfter is how long until one is allowed, 0 when one is now.
	RetryAfter time.Duration
}

// forgetEvery is how often names are looked through for those whose burst is
// whole again: they need no memory.
const forgetEvery = time.Minute

// Limiter counts by name, "requests/ACCOUNT" for example.
type Limiter struct {
	now func() time.Time

	mu        sync.Mutex
	buckets   map[string]*bucket
	forgotten time.Time
}

type bucket struct {
	rate   Rate
	tokens *rate.Limiter
}

// New makes a limiter with a clock.
func New(now func() time.Time) *Limiter {
	return &Limiter{now: now, buckets: map[string]*bucket{}, forgotten: now()}
}

// Take counts n where they are allowed at once, and tells where the name then
// stands. A name whose rate changes starts over. The error is always nil; it is
// there for counts that are kept elsewhere.
func (l *Limiter) Take(_ context.Context, name string, n int, r Rate) (State, error) {
	if r.PerSecond <= 0 {
		return unlimited(), nil
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(name, r, now)
	return b.state(now, b.tokens.AllowN(now, n)), nil
}

// Charge counts n that are used already, allowed or not: what is over the rate
// is a debt that later takes wait for. The error is always nil.
func (l *Limiter) Charge(_ context.Context, name string, n int, r Rate) (State, error) {
	if r.PerSecond <= 0 {
		return unlimited(), nil
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(name, r, now)
	for left := n; left > 0; left -= b.tokens.Burst() {
		b.tokens.ReserveN(now, min(left, b.tokens.Burst()))
	}
	return b.state(now, true), nil
}

func unlimited() State { return State{Allowed: true, Remaining: math.MaxInt32} }

func (l *Limiter) bucket(name string, r Rate, now time.Time) *bucket {
	l.forget(now)
	b := l.buckets[name]
	if b == nil || b.rate != r {
		b = &bucket{r, rate.NewLimiter(rate.Limit(r.PerSecond), max(r.Burst, 1))}
		l.buckets[name] = b
	}
	return b
}

func (b *bucket) state(now time.Time, allowed bool) State {
	left := b.tokens.TokensAt(now)
	state := State{Allowed: allowed, Remaining: int(max(left, 0))}
	state.Reset = seconds((float64(b.tokens.Burst()) - left) / b.rate.PerSecond)
	if left < 1 {
		state.RetryAfter = seconds((1 - left) / b.rate.PerSecond)
	}
	return state
}

// forget drops the names whose burst is whole again.
func (l *Limiter) forget(now time.Time) {
	if now.Sub(l.forgotten) < forgetEvery {
		return
	}
	l.forgotten = now
	for name, b := range l.buckets {
		if b.tokens.TokensAt(now) >= float64(b.tokens.Burst()) {
			delete(l.buckets, name)
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
