package budgettest

import (
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

// now is when budgets are changed.
var now = conformance.Tomorrow()

var budgetTests = []test{
	{"keep the budgets of each account in the order of key, period and unit", func(s *suite) {
		all := []budget.Budget{
			{ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}, Limit: 1},
			{ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Tokens}, Limit: 2},
			{ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Cost}, Limit: budget.MaxLimit},
			{ID: budget.ID{Account: "acme", Key: "key_1", Period: budget.Month, Unit: budget.SessionSeconds}, Limit: 0},
			{ID: budget.ID{Account: "acme", Key: "key_2", Period: budget.Day, Unit: budget.Jobs}, Limit: 7},
		}
		for _, i := range []int{3, 1, 4, 0, 2} {
			conformance.OK(s, s.Set(s.ctx, audit.Operator(now), all[i]))
		}
		other := budget.Budget{ID: budget.ID{Account: "acme/2", Period: budget.Day, Unit: budget.Cost}, Limit: 9}
		conformance.OK(s, s.Set(s.ctx, audit.Operator(now), other))
		s.budgets("acme", all...)
		s.budgets("acme/2", other)
		s.budgets("nobody")
	}},
	{"replace a budget that is set again", func(s *suite) {
		conformance.OK(s, s.Set(s.ctx, audit.Operator(now), budget.Budget{ID: daily, Limit: 5}))
		conformance.OK(s, s.Set(s.ctx, audit.Operator(now), budget.Budget{ID: daily, Limit: 3}))
		s.budgets("acme", budget.Budget{ID: daily, Limit: 3})
	}},
	{"delete a budget once, and go on counting", func(s *suite) {
		conformance.OK(s, s.Set(s.ctx, audit.Operator(now), budget.Budget{ID: daily, Limit: 5}))
		l := s.lease(today)
		s.took(&l, 5, 2, 2, 2)
		conformance.OK(s, s.Delete(s.ctx, audit.Operator(now), daily))
		conformance.Fails(s, s.Delete(s.ctx, audit.Operator(now), daily), fault.NotFound)
		s.budgets("acme")
		s.used(today, 2)
	}},
	{"count each window of each budget apart", func(s *suite) {
		counters := []budget.Counter{
			today, {ID: daily, Window: "2026-02-04"},
			{ID: budget.ID{Account: "acme", Key: "key_1", Period: budget.Day, Unit: budget.Cost}, Window: today.Window},
			{ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Tokens}, Window: today.Window},
			{ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Cost}, Window: "2026-02"},
			{ID: budget.ID{Account: "zoo", Period: budget.Day, Unit: budget.Cost}, Window: today.Window},
		}
		var want []int64
		for i, c := range counters {
			l := s.lease(c)
			s.took(&l, 100, int64(i+1), int64(i+1), int64(i+1))
			want = append(want, int64(i+1))
		}
		got, err := s.Store.Used(s.ctx, append(counters, budget.Counter{ID: daily, Window: "2020-01-01"}))
		conformance.OK(s, err)
		conformance.Same(s, "what is used", got, append(want, 0))
	}},
	{"say once that a warning is due, and once more when a higher one is", func(s *suite) {
		l := s.lease(today)
		s.took(&l, 10, 8, 8, 8)
		for _, c := range []struct {
			percent int
			first   bool
		}{{80, true}, {80, false}, {100, true}, {100, false}, {80, false}} {
			first, err := s.Warned(s.ctx, today, c.percent)
			conformance.OK(s, err)
			if first != c.first {
				s.Errorf("a warning of %d %%: first is %v", c.percent, first)
			}
		}
		s.used(today, 8)
	}},
	{"let one of many say that a warning is due", func(s *suite) {
		l := s.lease(today)
		s.took(&l, 10, 8, 8, 8)
		firsts := make([]bool, 8)
		for _, err := range conformance.Race(8, func(i int) (err error) {
			firsts[i], err = s.Warned(s.ctx, today, 80)
			return err
		}) {
			conformance.OK(s, err)
		}
		n := 0
		for _, first := range firsts {
			if first {
				n++
			}
		}
		if n != 1 {
			s.Errorf("%d were the first", n)
		}
	}},
}
