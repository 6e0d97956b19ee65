// Package ratelimit counts what accounts and keys use against the rates of a tier,
// such as requests per second with a burst, or tokens per minute
// (docs/contract/limits.md#tiers).
//
// The count of [Limiter] lives in this process. On one machine that makes the
// rate exact; a service of several processes counts in its record store.
package ratelimit

import (
	"context"
	"time"
)

// Limiter counts by name, "requests/ACCOUNT" for example. Every count takes the
// same short time, however much is counted, and waits for no other name's.
type Limiter struct {
	now   func() time.Time
	names names[bucket]
}

// bucket is what is counted of a name. Its zero value has counted nothing.
type bucket struct {
	rate Rate
	// wholeAt is when the burst is whole again.
	wholeAt time.Time
}

// New makes a limiter with a clock.
func New(now func() time.Time) *Limiter {
	return &Limiter{now: now, names: names[bucket]{started: now()}}
}

// Take counts n where they are allowed at once, and tells where the name then
// stands. A name whose rate changes starts over. The error is always nil; it is
// there for counts that are kept elsewhere.
func (l *Limiter) Take(_ context.Context, name string, n int, r Rate) (State, error) {
	return l.count(name, n, r, func(ahead, cost time.Duration) (time.Duration, bool) {
		if ahead+cost > r.Ahead() {
			return ahead, false
		}
		return ahead + cost, true
	}), nil
}

// Charge counts n that are used already, allowed or not: what is over the rate
// is a debt that later takes wait for, up to LongestDebt. The error is always
// nil.
func (l *Limiter) Charge(_ context.Context, name string, n int, r Rate) (State, error) {
	return l.count(name, n, r, func(ahead, cost time.Duration) (time.Duration, bool) {
		return max(ahead, min(ahead+cost, r.Longest())), true
	}), nil
}

// count moves a name on: from how far it is ahead of now, by the cost of n, to
// where move says.
func (l *Limiter) count(
	name string, n int, r Rate, move func(ahead, cost time.Duration) (to time.Duration, allowed bool),
) State {
	if r.PerSecond <= 0 {
		return Unlimited()
	}
	now := l.now()
	l.names.forget(now, func(b *bucket) bool { return !b.wholeAt.After(now) })
	b := l.names.lock(name)
	defer b.Unlock()
	if b.value.rate != r || b.value.wholeAt.Sub(now) > 2*r.Longest() {
		b.value = bucket{rate: r}
	}
	ahead, allowed := move(max(b.value.wholeAt.Sub(now), 0), r.Cost(n))
	b.value.wholeAt = now.Add(ahead)
	return r.State(allowed, ahead)
}
