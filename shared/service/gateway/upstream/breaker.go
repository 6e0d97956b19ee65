package upstream

import (
	"maps"
	"time"
)

const (
	// tripAfter is the number of consecutive failures, across all accounts, after which the breaker opens.
	tripAfter = 5
	// minOpen is how long a breaker stays open at first. Every failed probe doubles the time, up to maxOpen.
	minOpen = 5 * time.Second
	maxOpen = time.Minute
)

const anyAccount = ""

// breaker is a circuit breaker with a state for each account. A failing upstream is not called for a while, and
// then only by single probes until one succeeds. A failure blocks only the account that made the call, because
// its request may be the reason. The owner must guard the breaker with a lock.
type breaker struct {
	failures int
	// pauses contains the accounts for which the breaker is open, or anyAccount if it is open for all.
	pauses map[string]pause
}

type pause struct {
	until time.Time
	wait  time.Duration
}

// clearIn returns the time until the account's next call may start. It is 0 or negative if the call may start now.
func (b *breaker) clearIn(now time.Time, account string) time.Duration {
	if len(b.pauses) == 0 {
		return 0
	}
	return max(b.pauses[account].until.Sub(now), b.pauses[anyAccount].until.Sub(now))
}

// admit starts a call that clearIn permits. It reports whether the call is a probe. The methods succeed, fail and
// abandon need this value. The next probe may start after a wait, even if this probe is still running.
func (b *breaker) admit(account string, now time.Time) (probe bool) {
	for _, key := range []string{account, anyAccount} {
		if p, open := b.pauses[key]; open {
			p.wait = min(2*p.wait, maxOpen)
			p.until = now.Add(p.wait)
			b.pauses[key], probe = p, true
		}
	}
	return probe
}

// succeed ends a successful call. Only a probe closes an open breaker, because other calls started
// before it opened or belong to other accounts.
func (b *breaker) succeed(probe bool, account string) {
	b.failures = 0
	if probe {
		delete(b.pauses, account)
		delete(b.pauses, anyAccount)
	}
}

// fail ends a failed call. Pass the account if its request may be the reason, otherwise anyAccount.
func (b *breaker) fail(probe bool, account string, now time.Time) {
	b.failures++
	if probe && account != anyAccount {
		delete(b.pauses, anyAccount) // the upstream was reachable
	}
	switch p, open := b.pauses[account]; {
	case open && probe:
		b.pauses[account] = pause{now.Add(p.wait), p.wait}
	case !open && b.failures >= tripAfter:
		if b.pauses == nil {
			b.pauses = map[string]pause{}
		}
		maps.DeleteFunc(b.pauses, func(_ string, p pause) bool { return now.Sub(p.until) > maxOpen })
		b.pauses[account] = pause{now.Add(minOpen), minOpen}
	}
}

// abandon ends a call without a result. Another probe may start.
func (b *breaker) abandon(probe bool, account string) {
	for _, key := range []string{account, anyAccount} {
		if p, open := b.pauses[key]; open && probe {
			b.pauses[key] = pause{wait: max(p.wait/2, minOpen)}
		}
	}
}
