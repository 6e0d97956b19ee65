package ratelimit

import (
	"cmp"
	"math"
	"time"
)

// defaultDebt is the default of Rate.MaxDebt.
const defaultDebt = 10

// Rate permits PerSecond in the long run, and Burst in a single moment. A PerSecond of 0 means no
// limit.
type Rate struct {
	PerSecond float64
	Burst     int
	// MaxDebt limits the debt of charges, in bursts. 0 means 10.
	MaxDebt int
}

// PerMinute returns a rate of n per minute, with a burst of n.
func PerMinute(n int) Rate { return Rate{PerSecond: float64(n) / 60, Burst: n} }

type State struct {
	// Allowed is false if the count exceeded the rate and so was not counted.
	Allowed   bool
	Remaining int           // how many are allowed now
	Reset     time.Duration // until the full burst is allowed again
	// RetryAfter is the time until one more is allowed, or 0.
	RetryAfter time.Duration
}

func Unlimited() State { return State{Allowed: true, Remaining: math.MaxInt32} }

// The state of a name is one time: when its full burst is available again (generic cell rate
// algorithm). A count moves this time forward by its cost. If the time would be more than BurstTime
// ahead of now, the count exceeds the rate.

// Cost returns the time by which n counts move a name. It is rounded down, so that single counts
// never exceed a burst, and limited to MaxAhead, so that adding it never overflows.
func (r Rate) Cost(n int) time.Duration {
	return r.time(min(max(float64(n), 0), r.debt()))
}

// BurstTime limits how far ahead of now Take may move a name.
func (r Rate) BurstTime() time.Duration { return r.time(r.burst()) }

// MaxAhead limits how far ahead of now Charge may move a name. A name beyond twice that distance
// was set with a wrong clock and starts over.
func (r Rate) MaxAhead() time.Duration { return r.time(r.debt()) }

func (r Rate) debt() float64 { return float64(cmp.Or(r.MaxDebt, defaultDebt)) * r.burst() }

// ahead is the name's distance from now.
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

// longestTime caps every computed time, so that sums fit into a Duration.
const longestTime = 365 * 24 * time.Hour

// time returns how long n counts take in the long run.
func (r Rate) time(n float64) time.Duration {
	return time.Duration(min(n/r.PerSecond*float64(time.Second), float64(longestTime)))
}
