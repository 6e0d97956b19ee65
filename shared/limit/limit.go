// Package limit counts calls against the rates of a tier: requests per second,
// with a burst, for each account (decisions.md, "Limits by tier").
//
// The count lives in this process. On one machine that makes the rate exact; a
// service of several processes has the rate once for each.
package limit

import (
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

// State is where an account stands after a call.
type State struct {
	// Allowed reports whether the call is within the rate; one that is not
	// does not count.
	Allowed bool
	// Remaining is how many more calls are allowed at once.
	Remaining int
	// Reset is how long until the whole burst is allowed again.
	Reset time.Duration
	// RetryAfter is how long until a call is allowed, 0 when one is now.
	RetryAfter time.Duration
}

// forgetEvery is how often accounts are looked through for those whose burst is
// whole again: they need no memory.
const forgetEvery = time.Minute

// Limiter counts the calls of every account.
type Limiter struct {
	now func() time.Time

	mu        sync.Mutex
	accounts  map[string]*bucket
	forgotten time.Time
}

type bucket struct {
	rate   Rate
	tokens *rate.Limiter
}

// New makes a limiter with a clock.
func New(now func() time.Time) *Limiter {
	return &Limiter{now: now, accounts: map[string]*bucket{}, forgotten: now()}
}

// Take counts a call of the account and tells where it then stands. An account
// whose rate changes starts over.
func (l *Limiter) Take(account string, r Rate) State {
	if r.PerSecond <= 0 {
		return State{Allowed: true, Remaining: math.MaxInt32}
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	b := l.accounts[account]
	if b == nil || b.rate != r {
		b = &bucket{r, rate.NewLimiter(rate.Limit(r.PerSecond), max(r.Burst, 1))}
		l.accounts[account] = b
	}
	state := State{Allowed: b.tokens.AllowN(now, 1)}
	left := b.tokens.TokensAt(now)
	state.Remaining = int(max(left, 0))
	state.Reset = seconds((float64(b.tokens.Burst()) - left) / r.PerSecond)
	if left < 1 {
		state.RetryAfter = seconds((1 - left) / r.PerSecond)
	}
	return state
}

// forget drops the accounts that have not called for long enough.
func (l *Limiter) forget(now time.Time) {
	if now.Sub(l.forgotten) < forgetEvery {
		return
	}
	l.forgotten = now
	for account, b := range l.accounts {
		if b.tokens.TokensAt(now) >= float64(b.tokens.Burst()) {
			delete(l.accounts, account)
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
