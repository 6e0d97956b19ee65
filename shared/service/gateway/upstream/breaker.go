package upstream

import "time"

const (
	// tripAfter is the number of consecutive failures that open a breaker.
	tripAfter = 5
	// minOpen is how long a breaker stays open at first. Every failed probe doubles it, up to maxOpen.
	minOpen = 5 * time.Second
	maxOpen = time.Minute
)

// anyAccount means all accounts.
const anyAccount = ""

// breaker is a circuit breaker. A failing upstream is not called for a while. Then single probe
// calls are made until one succeeds. If all failures belong to one account, only that account is
// blocked, because its requests may be the reason and must not block the model for others. The
// owner must guard the breaker with a lock.
type breaker struct {
	// failures counts consecutive failures. account is the account of all of them, or anyAccount if
	// two accounts failed or the upstream itself was at fault.
	failures int
	account  string
	open     bool
	until    time.Time
	wait     time.Duration
	probing  bool
}

func (b *breaker) concerns(account string) bool {
	return b.open && (b.account == anyAccount || b.account == account)
}

// wouldAdmit reports whether a call from the account may start now.
func (b *breaker) wouldAdmit(now time.Time, account string) bool {
	return !b.concerns(account) || !b.probing && !now.Before(b.until)
}

// admit starts a call that wouldAdmit permitted. It reports whether the call is a probe. The result
// must be passed to succeed, fail or abandon at the end.
func (b *breaker) admit(account string) (probe bool) {
	if b.concerns(account) {
		b.probing = true
		return true
	}
	return false
}

// succeed ends a successful call. Only a probe affects an open breaker, because other calls started
// before it opened or belong to other accounts.
func (b *breaker) succeed(probe bool) {
	if probe || !b.open {
		*b = breaker{}
	}
}

// fail ends a failed call. Pass the account if its request may be the reason, otherwise anyAccount.
func (b *breaker) fail(probe bool, account string, now time.Time) {
	if b.failures == 0 {
		b.account = account
	} else if b.account != account {
		b.account = anyAccount
	}
	b.failures++
	switch {
	case probe:
		b.probing = false
		b.wait = min(2*b.wait, maxOpen)
		b.until = now.Add(b.wait)
	case !b.open && b.failures >= tripAfter:
		b.open, b.wait, b.until = true, minOpen, now.Add(minOpen)
	}
}

// abandon ends a call without a result.
func (b *breaker) abandon(probe bool) {
	if probe {
		b.probing = false
	}
}
