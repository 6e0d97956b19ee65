package budgettest

import (
	"fmt"
	"sync"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

var allocationTests = []test{
	{"take as much as remains, from the least to the most", func(s *suite) {
		one, two := s.allocation(today), s.allocation(today)
		s.took(&one, 100, 5, 60, 60)
		s.used(today, 60)
		s.took(&two, 100, 5, 60, 40)
		s.took(&one, 100, 1, 1, 0)
		s.used(today, 100)
		s.took(&one, 101, 1, 60, 1)
		s.used(today, 101)
	}},
	{"take nothing if less than the least remains, and return the remaining amount", func(s *suite) {
		l := s.allocation(today)
		s.took(&l, 100, 90, 90, 90)
		taken, err := s.Take(s.ctx, l, 100, 11, 50)
		conformance.OK(s, err)
		conformance.Same(s, "the result of Take", taken, budget.Taken{Amount: 90, Remaining: 10})
		taken, err = s.Take(s.ctx, l, 100, 10, 10)
		conformance.OK(s, err)
		conformance.Same(s, "the result of Take", taken, budget.Taken{Amount: 100})
		fresh := s.allocation(budget.Counter{ID: daily, Window: "2026-02-04"})
		s.took(&fresh, 100, 101, 200, 0)
		s.used(fresh.Counter, 0)
	}},
	{"take nothing beyond a lowered limit", func(s *suite) {
		l := s.allocation(today)
		s.took(&l, 100, 80, 80, 80)
		taken, err := s.Take(s.ctx, l, 50, 1, 1)
		conformance.OK(s, err)
		conformance.Same(s, "the result of Take", taken, budget.Taken{Amount: 80})
		s.used(today, 80)
		s.took(&l, 0, 1, 1, 0)
	}},
	{"never take more than the limit concurrently", func(s *suite) {
		const takers, limit = 12, 100
		allocations := make([]budget.Allocation, takers)
		for i := range allocations {
			allocations[i] = s.allocation(today)
		}
		var mu sync.Mutex
		all := int64(0)
		for _, err := range conformance.Race(takers, func(i int) error {
			for {
				taken, err := s.Take(s.ctx, allocations[i], limit, 1, int64(1+i%3))
				if err != nil || taken.Amount == allocations[i].Amount {
					return err
				}
				mu.Lock()
				all += taken.Amount - allocations[i].Amount
				mu.Unlock()
				allocations[i].Amount = taken.Amount
			}
		}) {
			conformance.OK(s, err)
		}
		if all != limit {
			s.Errorf("%d were taken of %d", all, limit)
		}
		s.used(today, limit)
	}},
	{"return the unused amount once when an allocation ends", func(s *suite) {
		l := s.allocation(today)
		s.took(&l, 100, 60, 60, 60)
		l.Spent, l.Flight = 20, 5
		for range 2 {
			conformance.OK(s, s.End(s.ctx, l))
			s.used(today, 25)
		}
		conformance.Fails(s, s.Report(s.ctx, l), fault.Conflict)
		conformance.OK(s, s.End(s.ctx, s.allocation(today)))
		s.used(today, 25)
	}},
	{"return a part of an allocation", func(s *suite) {
		l := s.allocation(today)
		s.took(&l, 100, 60, 60, 60)
		l.Spent, l.Flight = 20, 5
		left, err := s.Return(s.ctx, l, 30)
		conformance.OK(s, err)
		conformance.Same(s, "the allocation", left, int64(30))
		s.used(today, 30)
		l.Amount = left
		left, err = s.Return(s.ctx, l, 1000)
		conformance.OK(s, err)
		conformance.Same(s, "the allocation", left, int64(20))
		s.used(today, 20)
	}},
	{"keep the amount in flight of an expired allocation used", func(s *suite) {
		l := s.allocation(today)
		l.Flight = budget.MaxLimit
		s.took(&l, 100, 60, 60, 60)
		l.Spent = 20
		conformance.OK(s, s.Report(s.ctx, l))
		left, err := s.Return(s.ctx, l, 10)
		conformance.OK(s, err)
		conformance.Same(s, "the allocation", left, int64(50))
		s.Pass(budget.EndAfter + moment)
		s.used(today, 50)
	}},
	{"return the complete allocation if its owner believes that it has less", func(s *suite) {
		l := s.allocation(today)
		s.took(&l, 100, 60, 60, 60)
		less := l
		less.Amount, less.Spent = 40, 5
		conformance.OK(s, s.Report(s.ctx, less))
		left, err := s.Return(s.ctx, less, 10)
		conformance.OK(s, err)
		conformance.Same(s, "the allocation", left, int64(50))
		conformance.OK(s, s.End(s.ctx, less))
		s.used(today, 5)
	}},
	{"keep an allocation that is reported regularly", func(s *suite) {
		l := s.allocation(today)
		s.took(&l, 100, 60, 60, 60)
		for range 10 {
			s.Pass(budget.RenewEvery)
			l.Spent++
			conformance.OK(s, s.Report(s.ctx, l))
			s.used(today, 60)
		}
		s.Pass(budget.EndAfter - moment)
		s.took(&l, 100, 10, 10, 10)
		s.Pass(budget.EndAfter - moment)
		left, err := s.Return(s.ctx, l, 10)
		conformance.OK(s, err)
		s.Pass(budget.EndAfter - moment)
		s.used(today, left)
	}},
	{"end an allocation that was not reported for EndAfter with its last report", func(s *suite) {
		l := s.allocation(today)
		s.took(&l, 100, 60, 60, 60)
		l.Spent, l.Flight = 20, 5
		conformance.OK(s, s.Report(s.ctx, l))
		s.Pass(budget.EndAfter - moment)
		s.used(today, 60)
		s.Pass(2 * moment)
		s.used(today, 25)
		conformance.Fails(s, s.Report(s.ctx, l), fault.Conflict)
		_, err := s.Return(s.ctx, l, 1)
		conformance.Fails(s, err, fault.Conflict)
		_, err = s.Take(s.ctx, l, 100, 1, 1)
		conformance.Fails(s, err, fault.Conflict)
		conformance.OK(s, s.End(s.ctx, l))
		s.used(today, 25)
	}},
	{"take unused amounts of expired allocations", func(s *suite) {
		dead, live := s.allocation(today), s.allocation(today)
		s.took(&dead, 100, 70, 70, 70)
		s.took(&live, 100, 20, 20, 20)
		s.Pass(budget.EndAfter - moment)
		conformance.OK(s, s.Report(s.ctx, live))
		s.Pass(2 * moment)
		s.took(&live, 100, 80, 80, 80)
		s.used(today, 100)
	}},
	{"end expired allocations of one counter only", func(s *suite) {
		other := budget.Counter{ID: daily, Window: "2026-02-04"}
		dead, live := s.allocation(today), s.allocation(other)
		s.took(&dead, 100, 70, 70, 70)
		s.took(&live, 100, 70, 70, 70)
		s.Pass(budget.EndAfter + moment)
		s.used(today, 0)
		conformance.OK(s, s.Report(s.ctx, live))
		s.used(other, 70)
	}},
	{"end an expired allocation once despite concurrent calls", func(s *suite) {
		for i := range 4 {
			l := s.allocation(today)
			s.took(&l, 100, 20, 20, 20)
			l.Spent = int64(i)
			conformance.OK(s, s.Report(s.ctx, l))
		}
		s.Pass(budget.EndAfter + moment)
		for _, err := range conformance.Race(6, func(i int) error {
			if i%2 == 0 {
				_, err := s.Store.Used(s.ctx, []budget.Counter{today})
				return err
			}
			taken, err := s.Take(s.ctx, budget.Allocation{Counter: today, ID: fmt.Sprint("new-", i)}, 100, 30, 30)
			if err == nil && taken.Amount != 30 {
				err = fmt.Errorf("%d was taken", taken.Amount)
			}
			return err
		}) {
			conformance.OK(s, err)
		}
		s.used(today, 6+3*30)
	}},
}
