package ratelimit

import (
	"math"
	"time"
)

// LongestDebt bounds how far what is charged moves a name ahead, in bursts: what
// is over that is forgiven. Whatever a model server claims that a call used, the
// account is shut out for nine bursts' time at most.
const LongestDebt = 10

// Rate is how often something may be done: PerSecond in the long run, Burst at
// once. A rate of 0 per second is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// PerMinute is a rate of n a minute, all of which may come at once; 0 is no
// limit.
func PerMinute(n int) Rate { return Rate{PerSecond: float64(n) / 60, Burst: n} }

// State is where a name stands after a count.
type State struct {
	// Allowed reports whether what was counted is within the rate. What is not
	// does not count.
	Allowed bool
	// Remaining is how much more is allowed at once.
	Remaining int
	// Reset is how long until the whole burst is allowed again.
	Reset time.Duration
	// RetryAfter is how long until one is allowed, 0 when one is now.
	RetryAfter time.Duration
}

// Unlimited is where every name stands that has no limit.
func Unlimited() State { return State{Allowed: true, Remaining: math.MaxInt32} }

// A name is one time: when its burst is whole again (the generic cell rate
// algorithm). What is counted moves it on by its cost, and what would move it
// further ahead of now than the burst's time is over the rate.

// Cost is what n move a name on by. It is in whole nanoseconds, rounded down, so
// that a burst of single counts is no longer than the burst; and at least 0 and
// at most Longest, so that adding to it never overflows.
func (r Rate) Cost(n int) time.Duration {
	return r.time(min(max(float64(n), 0), LongestDebt*r.burst()))
}

// Ahead is how far ahead of now a name may be by what is taken.
func (r Rate) Ahead() time.Duration { return r.time(r.burst()) }

// Longest is how far ahead of now a name may be by what is charged. A time
// further away than twice that was written by a clock that went wrong; such a
// name starts over.
func (r Rate) Longest() time.Duration { return r.time(LongestDebt * r.burst()) }

// State tells where a name stands that is so far ahead of now.
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

// longestTime bounds every time that is computed of a rate; a year is further
// away than anybody waits for, and hundreds of them fit into a time.
const longestTime = 365 * 24 * time.Hour

// time is how long n take in the long run.
func (r Rate) time(n float64) time.Duration {
	return time.Duration(min(n/r.PerSecond*float64(time.Second), float64(longestTime)))
}
