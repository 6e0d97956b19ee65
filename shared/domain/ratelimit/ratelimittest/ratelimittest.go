// Package ratelimittest specifies the behavior of rate limiters.
package ratelimittest

import (
	"context"
	"math"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/testkit/conformance"
)

type Limiter interface {
	Take(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error)
	Charge(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error)
}

type Harness struct {
	Limiter Limiter
	// Pass advances the limiter's clock, which otherwise does not move.
	Pass func(time.Duration)
}

// Run calls `open` once per test. That function must register a cleanup that closes its limiter.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.run(&suite{T: t, Harness: open(t), ctx: conformance.Context(t)})
		})
	}
}

type test struct {
	name string
	run  func(s *suite)
}

type suite struct {
	*testing.T
	Harness
	ctx context.Context
}

var twice = ratelimit.Rate{PerSecond: 2, Burst: 3}

func (s *suite) take(name string, n int, rate ratelimit.Rate) ratelimit.State {
	s.Helper()
	state, err := s.Limiter.Take(s.ctx, name, n, rate)
	conformance.OK(s, err)
	return rounded(state)
}

func (s *suite) charge(name string, n int, rate ratelimit.Rate) ratelimit.State {
	s.Helper()
	state, err := s.Limiter.Charge(s.ctx, name, n, rate)
	conformance.OK(s, err)
	return rounded(state)
}

// rounded rounds times to milliseconds, which is the guaranteed precision.
func rounded(s ratelimit.State) ratelimit.State {
	s.Reset, s.RetryAfter = s.Reset.Round(time.Millisecond), s.RetryAfter.Round(time.Millisecond)
	return s
}

func (s *suite) is(got ratelimit.State, allowed bool, remaining int, reset, retryAfter time.Duration) {
	s.Helper()
	if want := (ratelimit.State{Allowed: allowed, Remaining: remaining, Reset: reset, RetryAfter: retryAfter}); got != want {
		s.Fatalf("got %+v, want %+v", got, want)
	}
}

const ms = time.Millisecond

var tests = []test{
	{"a burst is allowed immediately, and then single counts at the rate", func(s *suite) {
		s.is(s.take("a", 1, twice), true, 2, 500*ms, 0)
		s.is(s.take("a", 1, twice), true, 1, 1000*ms, 0)
		s.is(s.take("a", 1, twice), true, 0, 1500*ms, 500*ms)
		for range 3 {
			s.is(s.take("a", 1, twice), false, 0, 1500*ms, 500*ms)
		}
		s.Pass(499 * ms)
		s.is(s.take("a", 1, twice), false, 0, 1001*ms, 1*ms)
		s.Pass(1 * ms)
		s.is(s.take("a", 1, twice), true, 0, 1500*ms, 500*ms)
		s.is(s.take("a", 1, twice), false, 0, 1500*ms, 500*ms)
	}},
	{"a burst refills completely but not beyond its size", func(s *suite) {
		s.take("a", 3, twice)
		s.Pass(1500 * ms)
		s.is(s.take("a", 1, twice), true, 2, 500*ms, 0)
		s.Pass(time.Hour)
		s.is(s.take("a", 3, twice), true, 0, 1500*ms, 500*ms)
		s.is(s.take("a", 1, twice), false, 0, 1500*ms, 500*ms)
	}},
	{"a take counts completely or not at all", func(s *suite) {
		s.is(s.take("a", 2, twice), true, 1, 1000*ms, 0)
		s.is(s.take("a", 2, twice), false, 1, 1000*ms, 0)
		s.is(s.take("a", 1, twice), true, 0, 1500*ms, 500*ms)
	}},
	{"more than a burst is never allowed and never counted", func(s *suite) {
		s.is(s.take("a", 4, twice), false, 3, 0, 0)
		s.take("a", 1, twice)
		s.is(s.take("a", 4, twice), false, 2, 500*ms, 0)
		s.Pass(time.Hour)
		s.is(s.take("a", 4, twice), false, 3, 0, 0)
	}},
	{"a rate that does not divide a second evenly is kept", func(s *suite) {
		third := ratelimit.Rate{PerSecond: 3, Burst: 3}
		for i := range 3 {
			if state := s.take("a", 1, third); !state.Allowed || state.Remaining != 2-i {
				s.Fatalf("count %d: %+v", i+1, state)
			}
		}
		if state := s.take("a", 1, third); state.Allowed {
			s.Fatalf("over the burst: %+v", state)
		}
		s.Pass(334 * ms)
		if state := s.take("a", 1, third); !state.Allowed {
			s.Fatalf("when one is due: %+v", state)
		}
	}},
	{"names are counted separately", func(s *suite) {
		s.take("a", 3, twice)
		s.is(s.take("b", 1, twice), true, 2, 500*ms, 0)
		s.is(s.take("a", 1, twice), false, 0, 1500*ms, 500*ms)
	}},
	{"a zero rate means no limit", func(s *suite) {
		for range 3 {
			s.is(s.take("a", 1000, ratelimit.Rate{}), true, math.MaxInt32, 0, 0)
			s.is(s.charge("a", 1000, ratelimit.Rate{}), true, math.MaxInt32, 0, 0)
		}
	}},
	{"the burst is at least one", func(s *suite) {
		s.is(s.take("a", 1, ratelimit.Rate{PerSecond: 1}), true, 0, 1000*ms, 1000*ms)
	}},
	{"each rate of a name has a separate count", func(s *suite) {
		s.take("a", 3, twice)
		s.is(s.take("a", 1, ratelimit.Rate{PerSecond: 2, Burst: 5}), true, 4, 500*ms, 0)
		s.is(s.take("a", 1, twice), false, 0, 1500*ms, 500*ms)
	}},
	{"a charge counts, and its excess becomes a debt", func(s *suite) {
		minute := ratelimit.PerMinute(60)
		s.is(s.charge("a", 20, minute), true, 40, 20*time.Second, 0)
		s.is(s.charge("a", 130, minute), true, 0, 150*time.Second, 91*time.Second)
		s.is(s.take("a", 1, minute), false, 0, 150*time.Second, 91*time.Second)
		s.Pass(90 * time.Second)
		s.is(s.take("a", 1, minute), false, 0, 60*time.Second, 1*time.Second)
		s.Pass(1 * time.Second)
		s.is(s.take("a", 1, minute), true, 0, 60*time.Second, 1*time.Second)
	}},
	{"the debt of one name is limited", func(s *suite) {
		minute := ratelimit.PerMinute(60)
		for _, n := range []int{1e15, math.MaxInt, 1, 1e9} {
			s.is(s.charge("a", n, minute), true, 0, 600*time.Second, 541*time.Second)
		}
		s.is(s.take("a", 1, minute), false, 0, 600*time.Second, 541*time.Second)
		s.Pass(541 * time.Second)
		s.is(s.take("a", 1, minute), true, 0, 60*time.Second, 1*time.Second)
	}},
	{"the debt from many charges is limited", func(s *suite) {
		minute := ratelimit.PerMinute(60)
		for range 9 {
			s.charge("a", 61, minute)
		}
		s.is(s.charge("a", 60, minute), true, 0, 600*time.Second, 541*time.Second)
		s.is(s.take("b", 1, minute), true, 59, 1*time.Second, 0)
	}},
	{"negative counts have no effect", func(s *suite) {
		minute := ratelimit.PerMinute(60)
		s.take("a", 10, minute)
		s.is(s.charge("a", -1e15, minute), true, 50, 10*time.Second, 0)
		s.is(s.take("a", -5, minute), true, 50, 10*time.Second, 0)
		s.is(s.take("a", math.MaxInt, minute), false, 50, 10*time.Second, 0)
	}},
	{"concurrent takes do not exceed the burst", func(s *suite) {
		allowed := 0
		for _, err := range conformance.Race(40, func(int) error {
			state, err := s.Limiter.Take(s.ctx, "a", 1, ratelimit.Rate{PerSecond: 1, Burst: 7})
			if err == nil && !state.Allowed {
				err = fault.New(fault.Limited, "over")
			}
			return err
		}) {
			if err == nil {
				allowed++
			} else {
				conformance.Fails(s, err, fault.Limited)
			}
		}
		if allowed != 7 {
			s.Errorf("%d were allowed, want 7", allowed)
		}
	}},
	{"every concurrent charge counts", func(s *suite) {
		for _, err := range conformance.Race(20, func(int) error {
			_, err := s.Limiter.Charge(s.ctx, "a", 2, ratelimit.PerMinute(60))
			return err
		}) {
			conformance.OK(s, err)
		}
		s.is(s.take("a", 1, ratelimit.PerMinute(60)), true, 19, 41*time.Second, 0)
	}},
}
