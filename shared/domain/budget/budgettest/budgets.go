package budgettest

import (
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

var now = conformance.Tomorrow()

var budgetTests = []test{
	{"list the budgets of each account by key, period and unit", func(s *suite) {
		all := []budget.Budget{
			{ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}, Limit: 1},
			{ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Tokens}, Limit: 2, WarnURL: hook},
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
	{"replace a budget with the same ID", func(s *suite) {
		for _, b := range []budget.Budget{{ID: daily, Limit: 5}, {ID: daily, Limit: 3, WarnURL: hook}, {ID: daily, Limit: 3}} {
			conformance.OK(s, s.Set(s.ctx, audit.Operator(now), b))
			s.budgets("acme", b)
		}
	}},
	{"delete a budget once and keep its counters", func(s *suite) {
		conformance.OK(s, s.Set(s.ctx, audit.Operator(now), budget.Budget{ID: daily, Limit: 5}))
		l := s.allocation(today)
		s.took(&l, 5, 2, 2, 2)
		conformance.OK(s, s.Delete(s.ctx, audit.Operator(now), daily))
		conformance.Fails(s, s.Delete(s.ctx, audit.Operator(now), daily), fault.NotFound)
		s.budgets("acme")
		s.used(today, 2)
	}},
	{"count each window of each budget separately", func(s *suite) {
		counters := []budget.Counter{
			today, {ID: daily, Window: "2026-02-04"},
			{ID: budget.ID{Account: "acme", Key: "key_1", Period: budget.Day, Unit: budget.Cost}, Window: today.Window},
			{ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Tokens}, Window: today.Window},
			{ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Cost}, Window: "2026-02"},
			{ID: budget.ID{Account: "zoo", Period: budget.Day, Unit: budget.Cost}, Window: today.Window},
		}
		var want []int64
		for i, c := range counters {
			l := s.allocation(c)
			s.took(&l, 100, int64(i+1), int64(i+1), int64(i+1))
			want = append(want, int64(i+1))
		}
		got, err := s.Store.Used(s.ctx, append(counters, budget.Counter{ID: daily, Window: "2020-01-01"}))
		conformance.OK(s, err)
		conformance.Same(s, "the used amounts", got, append(want, 0))
	}},
}
