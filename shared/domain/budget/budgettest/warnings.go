package budgettest

import (
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

const hook = "https://example.com/budgets"

func (s *suite) limited(limit int64) budget.Budget {
	s.Helper()
	b := budget.Budget{ID: daily, Limit: limit, WarnURL: hook}
	conformance.OK(s, s.Set(s.ctx, audit.Operator(now), b))
	return b
}

// warns checks that a warning for the percentage want is due today. 0 means that no warning is due.
func (s *suite) warns(missed int64, want int) budget.Warning {
	s.Helper()
	noted, err := s.Warn(s.ctx, today, missed, now)
	conformance.OK(s, err)
	conformance.Same(s, "the percentage of the warning", noted.Warning.Percent, want)
	return noted.Warning
}

var warningTests = []test{
	{"record a due warning once per percentage", func(s *suite) {
		b, l := s.limited(10), s.allocation(today)
		s.warns(0, 0)
		s.took(&l, 10, 7, 7, 7)
		s.warns(4, 0)
		s.took(&l, 10, 1, 1, 1)
		first := s.warns(2, 80)
		conformance.Same(s, "the warning", first, budget.Warning{
			State: budget.State{Budget: b, Window: today.Window, Used: 8}, Percent: 80, At: now.Truncate(time.Millisecond),
		})
		s.warns(2, 0)
		last := s.warns(3, 100)
		s.warns(3, 0)
		for _, want := range []budget.Warning{first, last} {
			got, err := s.Warning(s.ctx, want.EventID())
			conformance.OK(s, err)
			conformance.Same(s, "the stored warning", got, want)
		}
		noted, err := s.Warn(s.ctx, today, 0, now)
		conformance.OK(s, err)
		conformance.Same(s, "the result of a repeated Warn", noted, budget.Noted{Percent: 100})
	}},
	{"record a warning when a limit is lowered, and no second one when it is raised", func(s *suite) {
		l := s.allocation(today)
		s.limited(100)
		s.took(&l, 100, 50, 50, 50)
		s.warns(0, 0)
		s.limited(50)
		s.warns(0, 100)
		s.limited(1000)
		s.warns(0, 0)
		s.limited(55)
		s.warns(0, 0)
	}},
	{"record but do not store a warning without a receiver", func(s *suite) {
		l := s.allocation(today)
		conformance.OK(s, s.Set(s.ctx, audit.Operator(now), budget.Budget{ID: daily, Limit: 10}))
		s.took(&l, 10, 10, 10, 10)
		w := s.warns(0, 100)
		_, err := s.Warning(s.ctx, w.EventID())
		conformance.Fails(s, err, fault.NotFound)
		s.limited(10)
		s.warns(0, 0)
	}},
	{"record no warning for a deleted budget or a limit of 0", func(s *suite) {
		l := s.allocation(today)
		s.limited(10)
		s.took(&l, 10, 10, 10, 10)
		conformance.OK(s, s.Delete(s.ctx, audit.Operator(now), daily))
		s.warns(1, 0)
		s.limited(0)
		s.warns(1, 0)
	}},
	{"let only one of several processes record a warning", func(s *suite) {
		l := s.allocation(today)
		s.limited(10)
		s.took(&l, 10, 8, 8, 8)
		noted := make([]budget.Noted, 8)
		for _, err := range conformance.Race(len(noted), func(i int) (err error) {
			noted[i], err = s.Warn(s.ctx, today, 0, now)
			return err
		}) {
			conformance.OK(s, err)
		}
		n := 0
		for _, one := range noted {
			conformance.Same(s, "the recorded percentage", one.Percent, 80)
			n += one.Warning.Percent / 80
		}
		conformance.Same(s, "the number of recorded warnings", n, 1)
	}},
	{"record warnings per window and keep the used amount", func(s *suite) {
		l := s.allocation(today)
		s.limited(10)
		s.took(&l, 10, 9, 9, 9)
		noted, err := s.Warn(s.ctx, budget.Counter{ID: daily, Window: "2026-02-04"}, 0, now)
		conformance.OK(s, err)
		conformance.Same(s, "the result of Warn", noted, budget.Noted{})
		s.warns(0, 80)
		s.used(today, 9)
	}},
}
