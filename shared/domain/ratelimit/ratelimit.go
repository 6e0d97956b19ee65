// Package ratelimit counts the usage of accounts and keys against the rates of a tier
// (docs/contract/limits.md#tiers). A [Limiter] counts in this process. A service of several
// processes counts in its record store.
package ratelimit

import (
	"context"
	"time"
)

// Limiter counts by name, such as "requests/ACCOUNT".
type Limiter struct {
	now   func() time.Time
	names names[bucket]
}

type bucket struct {
	rate   Rate
	fullAt time.Time
}

func New(now func() time.Time) *Limiter {
	return &Limiter{now: now, names: names[bucket]{started: now()}}
}

// Take counts n if the rate permits that now. A name whose rate changes starts over. The error is
// always nil. Implementations that share state may fail.
func (l *Limiter) Take(_ context.Context, name string, n int, r Rate) (State, error) {
	return l.count(name, n, r, func(ahead, cost time.Duration) (time.Duration, bool) {
		if ahead+cost > r.BurstTime() {
			return ahead, false
		}
		return ahead + cost, true
	}), nil
}

// Charge counts n even if they exceed the rate. The excess is a debt of up to MaxDebt, for which
// later calls of Take wait. The error is always nil.
func (l *Limiter) Charge(_ context.Context, name string, n int, r Rate) (State, error) {
	return l.count(name, n, r, func(ahead, cost time.Duration) (time.Duration, bool) {
		return max(ahead, min(ahead+cost, r.MaxAhead())), true
	}), nil
}

// move receives the name's distance from now and returns the new one.
func (l *Limiter) count(
	name string, n int, r Rate, move func(ahead, cost time.Duration) (to time.Duration, allowed bool),
) State {
	if r.PerSecond <= 0 {
		return Unlimited()
	}
	now := l.now()
	l.names.forget(now, func(b *bucket) bool { return !b.fullAt.After(now) })
	b := l.names.lock(name)
	defer b.Unlock()
	if b.value.rate != r || b.value.fullAt.Sub(now) > 2*r.MaxAhead() {
		b.value = bucket{rate: r}
	}
	ahead, allowed := move(max(b.value.fullAt.Sub(now), 0), r.Cost(n))
	b.value.fullAt = now.Add(ahead)
	return r.State(allowed, ahead)
}
