// Package ratelimit counts what accounts and keys use against the rates of a
// tier, such as requests per second with a burst, or tokens per minute
// (docs/contract/limits.md#tiers).
//
// A [Limiter] counts in this process, which is exact on one machine. A service
// of several processes counts in its record store.
package ratelimit

import (
	"context"
	"time"
)

// Limiter counts by name, such as "requests/ACCOUNT". A count takes the same
// short time however large it is, and does not wait for other names.
type Limiter struct {
	now   func() time.Time
	names names[bucket]
}

// bucket is the state of a name. The zero value has counted nothing.
type bucket struct {
	rate Rate
	// fullAt is when the full burst is available again.
	fullAt time.Time
}

// New returns a limiter; now is the clock.
func New(now func() time.Time) *Limiter {
	return &Limiter{now: now, names: names[bucket]{started: now()}}
}

// Take counts n if the rate allows them now, and returns the name's state. A
// name whose rate changes starts over. The error is always nil; other
// implementations, which count elsewhere, may fail.
func (l *Limiter) Take(_ context.Context, name string, n int, r Rate) (State, error) {
	return l.count(name, n, r, func(ahead, cost time.Duration) (time.Duration, bool) {
		if ahead+cost > r.BurstTime() {
			return ahead, false
		}
		return ahead + cost, true
	}), nil
}

// Charge counts n that were used already, allowed or not. What exceeds the rate
// is a debt that later takes wait for, up to MaxDebt. The error is always nil.
func (l *Limiter) Charge(_ context.Context, name string, n int, r Rate) (State, error) {
	return l.count(name, n, r, func(ahead, cost time.Duration) (time.Duration, bool) {
		return max(ahead, min(ahead+cost, r.MaxAhead())), true
	}), nil
}

// count moves a name: from how far it is ahead of now, by the cost of n, to
// what move returns.
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
