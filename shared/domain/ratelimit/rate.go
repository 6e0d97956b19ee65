package ratelimit

import (
	"math"
	"time"
)

// MaxDebt bounds the debt of charges, in bursts; more is forgiven. Whatever a
// model server claims that a call used, the account is shut out for at most the
// time of nine bursts.
const MaxDebt = 10

// Rate is how often something may be done: PerSecond in the long run, and Burst
// at once. A rate of 0 per second is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// PerMinute returns a rate of n a minute, all of which may come at once; 0
// means no limit.
func PerMinute(n int) Rate { return Rate{PerSecond: float64(n) / 60, Burst: n} }

// State is the state of a name after a count.
type State struct {
	// Allowed reports whether the count was within the rate; if not, it was not
	// counted.
	Allowed bool
	// Remaining is how much more is allowed now.
	Remaining int
	// Reset is how long until the full burst is allowed again.
	Reset time.Duration
	// RetryAfter is how long until one is allowed; 0 if one is allowed now.
	RetryAfter time.Duration
}

// Unlimited returns the state of a name without a limit.
func Unlimited() State { return State{Allowed: true, Remaining: math.MaxInt32} }

// The state of a name is one time: when its full burst is available again (the
// generic cell rate algorithm). A count moves this time by its cost; it is over
// the rate if that moves it further ahead of now than the burst's time.

// Cost is how far n counts move a name. It is in whole nanoseconds, rounded
// down, so that a burst of single counts is no longer than the burst; and
// between 0 and MaxAhead, so that adding it never overflows.
func (r Rate) Cost(n int) time.Duration {
	return r.time(min(max(float64(n), 0), MaxDebt*r.burst()))
}

// BurstTime is how far ahead of now Take may move a name.
func (r Rate) BurstTime() time.Duration { return r.time(r.burst()) }

// MaxAhead is how far ahead of now Charge may move a name. A time beyond twice
// that was written by a wrong clock; such a name starts over.
func (r Rate) MaxAhead() time.Duration { return r.time(MaxDebt * r.burst()) }

// State returns the state of a name that is this far ahead of now.
func (r Rate) State(allowed bool, ahead time.Duration) State {
	ahead = max(ahead, 0)
	left := r.burst() - ahead.Seconds()*r.PerSecond
	s := State{Allowed: allowed, Remaining: int(max(left, 0)), Reset: ahead}
	if left < 1 {
		s.RetryAfter = r.time(1 - left)
	}
	return s
}

func (r Rate) burst() float64 { return float64(max(r.Burst, 1)) }

// longestTime bounds every time computed from a rate: nobody waits a year, and
// hundreds of years fit into a Duration.
const longestTime = 365 * 24 * time.Hour

// time returns how long n take in the long run.
func (r Rate) time(n float64) time.Duration {
	return time.Duration(min(n/r.PerSecond*float64(time.Second), float64(longestTime)))
}
