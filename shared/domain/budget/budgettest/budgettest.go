// Package budgettest specifies the behaviour of [budget.Store] as tests that every adapter runs.
package budgettest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/testkit/conformance"
)

// Harness is an adapter's input to the suite.
type Harness struct {
	// Store has no budgets, counters and leases yet.
	Store budget.Store
	// Pass lets time pass for the leases.
	Pass func(time.Duration)
}

// Run runs the suite. The function makes a store, which is closed with the test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	conformance.Run(t, func(t *testing.T, _ string, test test) {
		h := open(t)
		test.run(&suite{T: t, Store: h.Store, Pass: h.Pass, ctx: conformance.Context(t)})
	}, conformance.About("Budgets", budgetTests), conformance.About("Allocations", leaseTests),
		conformance.About("Warnings", warningTests))
}

// test is one statement about the interface; its name is the statement.
type test struct {
	name string
	run  func(s *suite)
}

// Says returns the statement.
func (t test) Says() string { return t.name }

// suite is a test's environment.
type suite struct {
	*testing.T
	budget.Store
	Pass func(time.Duration)
	ctx  context.Context
	made int
}

// moment is the smallest difference between times of stores.
const moment = time.Second

// daily is the budget of most tests: an account's daily cost.
var daily = budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}

// today is the counter of most tests.
var today = budget.Counter{ID: daily, Window: "2026-02-03"}

// lease returns a new lease on a counter, which has no share yet.
func (s *suite) lease(c budget.Counter) budget.Allocation {
	s.made++
	return budget.Allocation{Counter: c, ID: fmt.Sprint("lease-", s.made)}
}

// took takes from a lease's counter and adds the result to the lease.
func (s *suite) took(l *budget.Allocation, limit, least, most, want int64) {
	s.Helper()
	taken, err := s.Take(s.ctx, *l, limit, least, most)
	conformance.OK(s, err)
	if got := taken.Amount - l.Amount; got != want {
		s.Fatalf("%d was taken of at least %d and at most %d, want %d", got, least, most, want)
	}
	l.Amount = taken.Amount
}

// used asserts a counter's use.
func (s *suite) used(c budget.Counter, want int64) {
	s.Helper()
	used, err := s.Store.Used(s.ctx, []budget.Counter{c})
	conformance.OK(s, err)
	conformance.Same(s, "what is used", used, []int64{want})
}

// budgets asserts the budgets of an account.
func (s *suite) budgets(account string, want ...budget.Budget) {
	s.Helper()
	got, err := s.Budgets(s.ctx, account)
	conformance.OK(s, err)
	conformance.SameList(s, "the budgets", got, want)
}

// UsedSince returns the use of a budget since a time, including the previous window if it has ended in
// between.
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
