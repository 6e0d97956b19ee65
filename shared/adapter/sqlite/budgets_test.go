package sqlite_test

import (
	"slices"
	"testing"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/budget/budgettest"
	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/conformance"
)

func TestBudgetsConform(t *testing.T) {
	budgettest.Run(t, func(t *testing.T) budgettest.Harness {
		clock := &machine{boot: "first"}
		return budgettest.Harness{Store: open(t).Budgets(clock), Pass: clock.pass}
	})
}

// Each hold is settled in its original window.
func TestHoldsAreReservedAndSettledTogether(t *testing.T) {
	clock, ctx := &machine{boot: "first"}, t.Context()
	budgets := open(t).Budgets(clock)
	daily := budget.Counter{
		ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}, Window: "2026-02-03",
	}
	monthly := budget.Counter{
		ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Cost}, Window: "2026-02",
	}
	used := func(want ...int64) {
		t.Helper()
		if got, err := budgets.Used(ctx, []budget.Counter{daily, monthly}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d are used (%v), want %d", got, err, want)
		}
	}
	allocation := budget.Allocation{Counter: daily, ID: "allocation-1"}
	if taken, err := budgets.Take(ctx, allocation, 100, 50, 50); err != nil || taken.Amount != 50 {
		t.Fatal(taken, err)
	}
	claim := func(amount int64) []budget.Claim {
		return []budget.Claim{{Counter: monthly, Limit: 1000, Amount: amount}, {Counter: daily, Limit: 100, Amount: amount}}
	}
	if _, err := budgets.Hold(ctx, claim(51)...); !fault.Is(err, fault.Exhausted) {
		t.Errorf("a hold beyond the budget: %v", err)
	}
	used(50, 0)
	holds, err := budgets.Hold(ctx, claim(50)...)
	conformance.OK(t, err)
	used(100, 50)
	conformance.OK(t, budgets.Settle(ctx, budget.Settle(holds, budget.Amounts{Cost: 12})...))
	used(62, 12)
	clock.pass(budget.EndAfter + time.Second)
	_, err = budgets.Hold(ctx, claim(88)...)
	conformance.OK(t, err)
	used(100, 100)
}

// After a reboot, reported usage and calls in flight still count as used.
func TestRebootEndsAllocations(t *testing.T) {
	path, ctx := t.TempDir()+"/cutroom.db", t.Context()
	before := &machine{boot: "first"}
	before.pass(time.Hour)
	counter := budget.Counter{
		ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}, Window: "2026-02-03",
	}
	allocation := budget.Allocation{Counter: counter, ID: "allocation-1", Spent: 3, Flight: 4}
	if _, err := openAt(t, path).Budgets(before).Take(ctx, allocation, 100, 50, 50); err != nil {
		t.Fatal(err)
	}
	after := openAt(t, path).Budgets(&machine{boot: "second"})
	if used, err := after.Used(ctx, []budget.Counter{counter}); err != nil || used[0] != 7 {
		t.Errorf("%d are used (%v), want 7", used, err)
	}
}
