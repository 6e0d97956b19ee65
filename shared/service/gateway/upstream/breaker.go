package upstream

import "time"

const (
	// tripAfter is how many failures in a row open a breaker.
	tripAfter = 5
	// minOpen is how long a breaker stays open at first; every probe that fails
	// doubles it, up to maxOpen.
	minOpen = 5 * time.Second
	maxOpen = time.Minute
)

// anyAccount stands for all accounts.
const anyAccount = ""

// breaker is a circuit breaker. An upstream that keeps failing is not called
// for a while, then probed with one call at a time until one succeeds. While
// the failures are all one account's, only that account is kept away: what it
// sends may be the reason, which must not close the model to the others. Its
// owner guards it.
type breaker struct {
	// failures counts those in a row. account is whose they were: anyAccount
	// once two accounts have failed, or once the upstream itself was at fault.
	failures int
	account  string
	open     bool
	// until is when an open breaker admits a probe.
	until time.Time
	wait  time.Duration
	// probing reports whether a probe is under way.
	probing bool
}

// concerns reports whether an open breaker is open for the account.
func (b *breaker) concerns(account string) bool {
	return b.open && (b.account == anyAccount || b.account == account)
}

// wouldAdmit reports whether a call of the account may begin now.
func (b *breaker) wouldAdmit(now time.Time, account string) bool {
	return !b.concerns(account) || !b.probing && !now.Before(b.until)
}

// admit begins a call that wouldAdmit allowed, and reports whether it is a
// probe. succeed, fail or abandon ends it, with the same value.
func (b *breaker) admit(account string) (probe bool) {
	if b.concerns(account) {
		b.probing = true
		return true
	}
	return false
}

// succeed ends a call that was answered. A call that is not a probe says
// nothing about an open breaker: it began before the breaker opened, or is of
// an account that the breaker does not concern.
func (b *breaker) succeed(probe bool) {
	if probe || !b.open {
		*b = breaker{}
	}
}

// fail ends a call that failed. It counts for the account, as its request may
// be the reason, or for anyAccount where it cannot be.
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

// abandon ends a call that was given up, which says nothing about the upstream.
func (b *breaker) abandon(probe bool) {
	if probe {
		b.probing = false
	}
}
