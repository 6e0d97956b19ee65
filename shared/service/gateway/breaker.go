package gateway

import "time"

const (
	// tripAfter is how many failures in a row open a breaker.
	tripAfter = 5
	// shortestOpen is how long a breaker that has just opened stays so;
	// every probe that fails doubles it, up to longestOpen.
	shortestOpen = 5 * time.Second
	longestOpen  = time.Minute
)

// breaker is a circuit breaker: an upstream that keeps failing is left alone
// for a while, then tried with one call at a time until one succeeds. The owner
// guards it.
type breaker struct {
	// failures counts those in a row.
	failures int
	open     bool
	// until is when an open breaker lets a probe through.
	until time.Time
	wait  time.Duration
	// probing reports that a probe is under way.
	probing bool
}

// wouldAdmit reports whether a call may begin now.
func (b *breaker) wouldAdmit(now time.Time) bool {
	return !b.open || !b.probing && !now.Before(b.until)
}

// admit begins a call that wouldAdmit has allowed, and reports whether it is a
// probe; the call's end is told with the same.
func (b *breaker) admit() (probe bool) {
	if b.open {
		b.probing = true
	}
	return b.open
}

// succeed ends a call that was answered. One that had begun before the breaker
// opened says nothing about now.
func (b *breaker) succeed(probe bool) {
	if probe || !b.open {
		*b = breaker{}
	}
}

// fail ends a call that was not.
func (b *breaker) fail(probe bool, now time.Time) {
	switch {
	case probe:
		b.probing = false
		b.wait = min(2*b.wait, longestOpen)
		b.until = now.Add(b.wait)
	case b.open:
	default:
		if b.failures++; b.failures >= tripAfter {
			b.open, b.wait, b.until = true, shortestOpen, now.Add(shortestOpen)
		}
	}
}

// abandon ends a call that tells nothing, as it was given up.
func (b *breaker) abandon(probe bool) {
	if probe {
		b.probing = false
	}
}
