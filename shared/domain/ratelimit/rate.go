package ratelimit

import (
	"math"
	"time"
)

// MaxDebt limits the debt of charges, in bursts. A model server that overstates the use of a call
// can lock out an account for at most the time of nine bursts.
const MaxDebt = 10

// Rate allows PerSecond in the long run, and Burst at once. A rate of 0 per second means no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// PerMinute returns a rate of n a minute, which may come all at once. 0 means no limit.
func PerMinute(n int) Rate { return Rate{PerSecond: float64(n) / 60, Burst: n} }

type State struct {
	// Allowed is false if the count exceeded the rate. It was then not counted.
	Allowed bool
	// Remaining is how much more is allowed now.
	Remaining int
	// Reset is how long until the full burst is allowed again.
	Reset time.Duration
	// RetryAfter is how long until one more is allowed; 0 if one is allowed now.
	RetryAfter time.Duration
}

func Unlimited() State { return State{Allowed: true, Remaining: math.MaxInt32} }

// The state of a name is one time: when its full burst is available again (the generic cell rate
// algorithm). A count moves this time forward by its cost. It exceeds the rate if the time would be
// further ahead of now than BurstTime.

// Cost is how far n counts move a name. It is rounded down to nanoseconds, so that single counts
// never exceed a burst, and limited to MaxAhead, so that adding it never overflows.
func (r Rate) Cost(n int) time.Duration {
	return r.time(min(max(float64(n), 0), MaxDebt*r.burst()))
}

// BurstTime is how far ahead of now Take may move a name.
func (r Rate) BurstTime() time.Duration { return r.time(r.burst()) }

// MaxAhead is how far ahead of now Charge may move a name. A time beyond twice that came from a
// wrong clock; such a name starts over.
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

// longestTime limits every time computed from a rate, so that sums fit into a Duration.
const longestTime = 365 * 24 * time.Hour

// time returns how long n counts take in the long run.
func (r Rate) time(n float64) time.Duration {
	return time.Duration(min(n/r.PerSecond*float64(time.Second), float64(longestTime)))
}
