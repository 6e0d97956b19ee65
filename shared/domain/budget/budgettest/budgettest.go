// Package budgettest specifies the behavior of [budget.Store] in tests that every adapter runs.
package budgettest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/testkit/conformance"
)

type Harness struct {
	Store budget.Store
	// Pass advances the store clock that allocations use.
	Pass func(time.Duration)
}

// Run calls `open` once per test. That function must register a cleanup that closes its store.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	conformance.Run(t, func(t *testing.T, _ string, test test) {
		h := open(t)
		test.run(&suite{T: t, Store: h.Store, Pass: h.Pass, ctx: conformance.Context(t)})
	}, conformance.About("Budgets", budgetTests), conformance.About("Allocations", allocationTests),
		conformance.About("Warnings", warningTests))
}

type test struct {
	name string
	run  func(s *suite)
}

func (t test) Says() string { return t.name }

type suite struct {
	*testing.T
	budget.Store
	Pass func(time.Duration)
	ctx  context.Context
	made int
}

const moment = time.Second

var daily = budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}

var today = budget.Counter{ID: daily, Window: "2026-02-03"}

func (s *suite) allocation(c budget.Counter) budget.Allocation {
	s.made++
	return budget.Allocation{Counter: c, ID: fmt.Sprint("allocation-", s.made)}
}

// took enlarges an allocation and updates l. It checks that the added amount equals want.
func (s *suite) took(l *budget.Allocation, limit, least, most, want int64) {
	s.Helper()
	taken, err := s.Take(s.ctx, *l, limit, least, most)
	conformance.OK(s, err)
	if got := taken.Amount - l.Amount; got != want {
		s.Fatalf("Take added %d, at least %d and at most %d, want %d", got, least, most, want)
	}
	l.Amount = taken.Amount
}

func (s *suite) used(c budget.Counter, want int64) {
	s.Helper()
	used, err := s.Store.Used(s.ctx, []budget.Counter{c})
	conformance.OK(s, err)
	conformance.Same(s, "the used amounts", used, []int64{want})
}

func (s *suite) budgets(account string, want ...budget.Budget) {
	s.Helper()
	got, err := s.Budgets(s.ctx, account)
	conformance.OK(s, err)
	conformance.SameList(s, "the budgets", got, want)
}

// UsedSince returns a budget's usage since a time. If a window has ended in the meantime, the
// previous window's usage is included.
func UsedSince(ctx context.Context, store budget.Store, b budget.Budget, since time.Time) (sum int64, err error) {
	counters := []budget.Counter{b.Counter(since)}
	if now := b.Counter(time.Now()); now != counters[0] {
		counters = append(counters, now)
	}
	used, err := store.Used(ctx, counters)
	for _, n := range used {
		sum += n
	}
	return sum, err
}
