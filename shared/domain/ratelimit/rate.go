package ratelimit

import (
	"cmp"
	"math"
	"time"
)

const defaultDebt = 10

// Rate permits PerSecond units (such as calls or tokens) per second on average, and Burst units at once. A PerSecond
// of 0 means no limit.
type Rate struct {
	PerSecond float64
	Burst     int
	// MaxDebt limits the debt, in bursts, that Charge may cause. 0 means 10.
	MaxDebt int
}

// PerMinute returns a rate of n per minute, with a burst of n.
func PerMinute(n int) Rate { return Rate{PerSecond: float64(n) / 60, Burst: n} }

type State struct {
	// Allowed is false if the call exceeded the rate. In that case it was not counted.
	Allowed   bool
	Remaining int           // how many more are allowed now
	Reset     time.Duration // the time until the full burst is available again
	// RetryAfter is the time until at least one more is allowed, or 0.
	RetryAfter time.Duration
}

func Unlimited() State { return State{Allowed: true, Remaining: math.MaxInt32} }

// The state of a name is a single time: when its full burst is available again (generic cell rate algorithm). Each
// count moves this time forward by its cost. A call exceeds the rate if the time would then be more than BurstTime
// ahead of now.

// Cost returns how far n events advance the time stored for a name. The result is rounded down, so that single counts never exceed a
// burst, and capped at MaxAhead, so that adding it never overflows.
func (r Rate) Cost(n int) time.Duration { return r.time(min(max(float64(n), 0), r.debt())) }

// BurstTime limits how far ahead of now Take may move a name's time.
func (r Rate) BurstTime() time.Duration { return r.time(r.burst()) }

// MaxAhead limits how far ahead of now Charge may move a name's time. A time more than twice that
// far ahead was set with a wrong clock and is reset.
func (r Rate) MaxAhead() time.Duration { return r.time(r.debt()) }

func (r Rate) debt() float64 { return float64(cmp.Or(r.MaxDebt, defaultDebt)) * r.burst() }

// ahead is how far the name's time is ahead of now.
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

// longestTime caps every computed time, so that sums fit in a Duration.
const longestTime = 365 * 24 * time.Hour

// time returns how long it takes at the average rate until n are allowed.
func (r Rate) time(n float64) time.Duration {
	return time.Duration(min(n/r.PerSecond*float64(time.Second), float64(longestTime)))
}
