package gateway

import "time"

const (
	// tripAfter is how many failures in a row open a breaker.
	tripAfter = 5
	// shortestOpen is how long a breaker that has just opened stays so;
	// every probe that fails doubles it, up to longestOpen.
	minOpen = 5 * time.Second
	maxOpen = time.Minute
)

// everybody stands for all accounts, in the place of one.
const anyAccount = ""

// breaker is a circuit breaker: an upstream that keeps failing is left alone
// for a while, then tried with one call at a time until one succeeds. It is left
// alone by those whose calls have failed: what one account sends may be the
// reason, which must not shut the model for the others. The owner guards it.
type breaker struct {
	// failures counts those in a row, and account is whose they were: everybody's
	// once they were those of two, or no caller's doing.
	failures int
	account  string
	open     bool
	// until is when an open breaker lets a probe through.
	until time.Time
	wait  time.Duration
	// probing reports that a probe is under way.
	probing bool
}

// concerns reports whether an open breaker is open for the account.
func (b *breaker) concerns(account string) bool {
	return b.open && (b.account == anyAccount || b.account == account)
}

// wouldAdmit reports whether a call of the account's may begin now.
func (b *breaker) wouldAdmit(now time.Time, account string) bool {
	return !b.concerns(account) || !b.probing && !now.Before(b.until)
}

// admit begins a call that wouldAdmit has allowed, and reports whether it is a
// probe; the call's end is told with the same.
func (b *breaker) admit(account string) (probe bool) {
	if b.concerns(account) {
		b.probing = true
		return true
	}
	return false
}

// succeed ends a call that was answered. One that had begun before the breaker
// opened, or for whom it is not, says nothing about those for whom it is.
func (b *breaker) succeed(probe bool) {
	if probe || !b.open {
		*b = breaker{}
	}
}

// fail ends a call that was not answered, by whose fault is not known: the
// account's, or everybody's where it cannot be that.
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

// abandon ends a call that tells nothing, as it was given up.
func (b *breaker) abandon(probe bool) {
	if probe {
		b.probing = false
	}
}
