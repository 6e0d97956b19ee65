// Package ratelimit limits the usage of accounts and keys to the rates of a tier (docs/contract/limits.md#tiers).
// A [Limiter] counts in this process. A service with several processes counts in its record store.
package ratelimit

import (
	"context"
	"time"
)

// Limiter counts by name, such as "requests/ACCOUNT".
type Limiter struct {
	now func() time.Time
	// names holds the times at which the full bursts are available again.
	names names[bucket, time.Time]
}

// bucket identifies a count. An account's keys may have different tiers, so a name has a separate
// count for each rate.
type bucket struct {
	name string
	rate Rate
}

func New(now func() time.Time) *Limiter {
	return &Limiter{now: now, names: names[bucket, time.Time]{started: now()}}
}

// Take counts n if the rate permits that now. A name has a separate count for each rate. The error
// is always nil here, but implementations that share state may fail.
func (l *Limiter) Take(_ context.Context, name string, n int, r Rate) (State, error) {
	return l.count(name, n, r, func(ahead, cost time.Duration) (time.Duration, bool) {
		if ahead+cost > r.BurstTime() {
			return ahead, false
		}
		return ahead + cost, true
	}), nil
}

// Charge counts n even if that exceeds the rate. The excess becomes a debt of up to MaxDebt, which
// must be paid off before Take succeeds again. The error is always nil.
func (l *Limiter) Charge(_ context.Context, name string, n int, r Rate) (State, error) {
	return l.count(name, n, r, func(ahead, cost time.Duration) (time.Duration, bool) {
		return max(ahead, min(ahead+cost, r.MaxAhead())), true
	}), nil
}

// count updates a name's time. The function `move` receives how far the time is ahead of now and returns the new
// value.
func (l *Limiter) count(name string, n int, r Rate,
	move func(ahead, cost time.Duration) (to time.Duration, allowed bool)) State {
	if r.PerSecond <= 0 {
		return Unlimited()
	}
	now := l.now()
	l.names.forget(now, func(fullAt *time.Time) bool { return !fullAt.After(now) })
	b := l.names.lock(bucket{name, r})
	defer b.Unlock()
	ahead := max(b.value.Sub(now), 0)
	if ahead > 2*r.MaxAhead() {
		ahead = 0
	}
	ahead, allowed := move(ahead, r.Cost(n))
	b.value = now.Add(ahead)
	return r.State(allowed, ahead)
}
