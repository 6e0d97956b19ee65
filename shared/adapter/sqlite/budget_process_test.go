package sqlite_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/budget/budgettest"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/testkit/conformance"
)

// What a call of the child processes reserves, and what it then costs.
const callMost, callCost = 70, 33

// spend makes calls until the budget is used up, and prints each while a model server
// would be at work on it.
func spend(db *sqlite.DB) error {
	machine, err := boottime.Open()
	if err != nil {
		return err
	}
	k := budget.NewKeeper(budget.KeeperConfig{
		Store: db.Budgets(machine), Machine: machine, Now: time.Now, NewID: rand.Text, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		k.Run(ctx)
	}()
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for {
				found, err := k.Find(ctx, "acme", "key_1")
				if err == nil {
					err = call(ctx, k, found)
				}
				if fault.Is(err, fault.Exhausted) {
					return
				}
				if err != nil {
					fmt.Println("failed", err)
				}
			}
		})
	}
	callers.Wait()
	stop()
	<-stopped
	return nil
}

func call(ctx context.Context, k *budget.Keeper, found []budget.Budget) error {
	r, err := k.Reserve(ctx, found, budget.Amounts{Cost: callMost})
	if err != nil {
		return err
	}
	fmt.Println("served")
	time.Sleep(mathrand.N(3 * time.Millisecond))
	r.Settle(ctx, budget.Amounts{Cost: callCost})
	return nil
}

// ahead is a clock that is ahead of the machine's.
type ahead struct {
	*boottime.Clock
	by time.Duration
}

func (a ahead) Now() time.Duration { return a.Clock.Now() + a.by }

// Processes share a budget while some of them are killed: what was served never exceeds it,
// all of that counts, and what the killed ones held is settled.
func TestBudgetOfProcessesThatAreKilled(t *testing.T) {
	t.Parallel()
	const processes, killed, limit = 4, 2, 60_000
	path, ctx := filepath.Join(t.TempDir(), "cutroom.db"), t.Context()
	machine, err := boottime.Open()
	conformance.OK(t, err)
	db := openAt(t, path)
	budgets := db.Budgets(machine)
	monthly := budget.Budget{ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Cost}, Limit: limit}
	conformance.OK(t, budgets.Set(ctx, audit.Operator(time.Now()), monthly))
	began := time.Now()
	counters := []budget.Counter{monthly.Counter(began)}

	var served atomic.Int64
	var all sync.WaitGroup
	for i := range processes {
		child, lines := startChild(t, "spend", path)
		all.Go(func() {
			for n := 1; lines.Scan(); n++ {
				if line := lines.Text(); line != "served" {
					t.Errorf("a process printed %q", line)
				}
				if served.Add(1); i < killed && n == 20*(i+1) {
					_ = child.Process.Kill()
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.Wait()
	}()
	for sampling := true; sampling; {
		used, err := budgets.Used(ctx, counters)
		conformance.OK(t, err)
		if used[0] > limit {
			t.Errorf("%d are used of %d", used[0], limit)
		}
		select {
		case <-ended:
			sampling = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	later := db.Budgets(ahead{machine, budget.EndAfter + time.Minute})
	used, err := budgettest.UsedSince(ctx, later, monthly, began)
	conformance.OK(t, err)
	cost := served.Load() * callCost
	// A killed process may have held a thirty-second of what remained, and its eight calls.
	const held = killed * (limit/32 + 16*callMost)
	last := monthly.Counter(time.Now())
	inMonth, err := later.Used(ctx, []budget.Counter{last})
	conformance.OK(t, err)
	if cost > used || inMonth[0] > limit || used-cost > held {
		t.Errorf("%d were served, and %d are used of %d", cost, used, limit)
	}
	t.Logf("%d were served, and %d are used of %d", cost, used, limit)
	lease := budget.Lease{Counter: last, ID: "lease-last"}
	if taken, err := later.Take(ctx, lease, limit, 1, limit); err != nil || taken.Share > limit-inMonth[0] {
		t.Errorf("%+v, %v was left", taken, err)
	}
}
