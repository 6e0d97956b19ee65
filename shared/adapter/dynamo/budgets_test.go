package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/budget/budgettest"
	"cutroom/shared/platform/boottime"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

func TestBudgetsConform(t *testing.T) {
	cloud := local.Cloud(t)
	budgettest.Run(t, func(t *testing.T) budgettest.Harness {
		clock, passed := &storeClock{now: time.Now()}, &machine{}
		config := cloud.Config()
		config.HTTPClient = &http.Client{Transport: clock}
		return budgettest.Harness{
			Store: dynamo.NewBudgets(dynamo.NewClient(config), cloud.MakeTable(t, "usage"), passed, rand.Text),
			Pass:  func(d time.Duration) { clock.pass(d); passed.now.Add(int64(d)) },
		}
	})
}

type machine struct{ now atomic.Int64 }

func (m *machine) Now() time.Duration { return time.Duration(m.now.Load()) }

var (
	daily = budget.Counter{
		ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Cost}, Window: "2126-02-03",
	}
	monthly = budget.Counter{
		ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Cost}, Window: "2126-02",
	}
)

// Holds do not depend on the processes' allocations. Each is settled in its original window.
func TestHoldsAreReservedAndSettledTogether(t *testing.T) {
	cloud, ctx := local.Cloud(t), t.Context()
	budgets := dynamo.NewBudgets(client(cloud), cloud.MakeTable(t, "usage"), &machine{}, rand.Text)
	used := func(want ...int64) {
		t.Helper()
		if got, err := budgets.Used(ctx, []budget.Counter{daily, monthly}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d are used (%v), want %d", got, err, want)
		}
	}
	_, err := budgets.Take(ctx, budget.Allocation{Counter: daily, ID: "allocation-1"}, 100, 50, 50)
	conformance.OK(t, err)
	claims := func(amount int64) []budget.Claim {
		return []budget.Claim{{Counter: monthly, Limit: 1000, Amount: amount}, {Counter: daily, Limit: 100, Amount: amount}}
	}
	for amount, want := range map[int64][]bool{51: {false, true}, 101: {false, true}, 1001: {true, true}} {
		if failed, err := budgets.Hold(ctx, claims(amount)...); err != nil || !slices.Equal(failed, want) {
			t.Errorf("a hold of %d: %v, %v", amount, failed, err)
		}
	}
	used(50, 0)
	if failed, err := budgets.Hold(ctx, claims(50)...); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	used(100, 50)
	holds := []budget.Hold{{Counter: monthly, Amount: 50}, {Counter: daily, Amount: 50}}
	conformance.OK(t, budgets.Settle(ctx, budget.Settle(holds, budget.Amounts{Cost: 12})...))
	used(62, 12)
}

// forgetful is a connection that loses the responses of some writes.
type forgetful struct {
	// The responses to this operation are lost while the counter left is above 0.
	operation string
	left      atomic.Int64
}

var errLost = errors.New("the response was lost")

func (f *forgetful) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil && strings.HasSuffix(request.Header.Get("X-Amz-Target"), f.operation) && f.left.Add(-1) >= 0 {
		response.Body.Close()
		return nil, errLost
	}
	return response, err
}

func TestBudgetsCountOnceAfterLostResponses(t *testing.T) {
	cloud := local.Cloud(t)
	lost := &forgetful{operation: "TransactWriteItems"}
	config := cloud.Config()
	config.HTTPClient = &http.Client{Transport: lost}
	table := cloud.MakeTable(t, "usage")
	budgets := dynamo.NewBudgets(dynamo.NewClient(config), table, &machine{}, rand.Text)
	ctx := t.Context()
	used := func(want int64) {
		t.Helper()
		if got, err := budgets.Used(ctx, []budget.Counter{daily}); err != nil || got[0] != want {
			t.Fatalf("%d are used (%v), want %d", got, err, want)
		}
	}
	allocation := budget.Allocation{Counter: daily, ID: "allocation-1"}
	lose := func(answers int64, do func(context.Context) error) {
		t.Helper()
		lost.left.Store(answers)
		if err := do(ctx); answers < 10 {
			conformance.OK(t, err)
		} else if err == nil {
			t.Error("a call without a response succeeded")
		}
		lost.left.Store(0)
	}
	take := func(ctx context.Context) error {
		taken, err := budgets.Take(ctx, allocation, 100, 10, 10)
		if err == nil {
			allocation.Amount = taken.Amount
		}
		return err
	}
	lose(1, take)
	used(10)
	lose(1000, take) // it succeeds, but the caller does not know
	used(20)
	lose(0, take)
	if used(20); allocation.Amount != 20 {
		t.Errorf("the allocation is %d, want 20, including the 10 that were found", allocation.Amount)
	}
	allocation.Spent = 3
	lose(1000, func(ctx context.Context) error { _, err := budgets.Return(ctx, allocation, 5); return err })
	used(15)
	lose(0, func(ctx context.Context) (err error) {
		allocation.Amount, err = budgets.Return(ctx, allocation, 5)
		return err
	})
	used(15)
	lose(1000, func(ctx context.Context) error { return budgets.End(ctx, allocation) })
	lose(0, func(ctx context.Context) error { return budgets.End(ctx, allocation) })
	used(3)
}

// The store throttles servers and functions and loses responses. In the end, the recorded usage equals the real
// usage.
func TestManyProcessesNeverExceedBudget(t *testing.T) {
	t.Parallel()
	cloud, ctx := local.Cloud(t), t.Context()
	const limit, most, cost = 15_000, 70, 33
	table := cloud.MakeTable(t, "usage")
	budgets := dynamo.NewBudgets(client(cloud), table, &machine{}, rand.Text)
	monthly := budget.Budget{ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Cost}, Limit: limit}
	conformance.OK(t, budgets.Set(ctx, audit.Operator(time.Now()), monthly))
	clock, err := boottime.Open()
	conformance.OK(t, err)
	now := time.Now() // all calls are in one month
	var spent atomic.Int64
	var all, running sync.WaitGroup
	ending, stop := context.WithCancel(context.Background())
	proxy := cloud.Proxy(t, 11, trouble)
	for i := range 4 {
		k := budget.NewManager(budget.ManagerConfig{
			Store:   dynamo.NewBudgets(dynamo.NewClient(proxy.Config()), table, clock, rand.Text),
			Machine: clock, Now: func() time.Time { return now },
			NewID: rand.Text, MayFreeze: i%2 == 1, Logger: slog.New(slog.DiscardHandler),
		})
		running.Go(func() { k.Run(ending) })
		callers := 6
		if i%2 == 1 {
			callers = 1 // a function makes one call at a time
		}
		for range callers {
			all.Go(func() {
				for range 60 {
					found, err := k.Find(ctx, "acme", "key_1")
					if err != nil {
						continue
					}
					if r, err := k.Reserve(ctx, found, budget.Amounts{Cost: most}); err == nil {
						r.Settle(ctx, budget.Amounts{Cost: cost})
						spent.Add(cost)
					}
				}
			})
		}
	}
	all.Wait()
	proxy.SetFaults(awstest.Faults{})
	stop()
	running.Wait()
	later := dynamo.NewBudgets(client(cloud), table, &machine{}, rand.Text)
	counter := monthly.Counter(now)
	used, err := later.Used(ctx, []budget.Counter{counter})
	conformance.OK(t, err)
	if used[0] != spent.Load() || used[0] > limit || used[0] == 0 {
		t.Errorf("%d of %d are used, but %d were spent", used[0], limit, spent.Load())
	}
	t.Logf("%d of %d are used, and %d were spent", used[0], limit, spent.Load())
}

func TestBudgetCallsMatchDocumentation(t *testing.T) {
	cloud, ctx := local.Cloud(t), t.Context()
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	store := dynamo.NewBudgets(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "usage"), &machine{}, rand.Text)
	allocation := budget.Allocation{Counter: daily, ID: "allocation-1"}
	take := func(least int64) func() error {
		return func() error {
			taken, err := store.Take(ctx, allocation, 100, least, least)
			allocation.Amount = taken.Amount
			return err
		}
	}
	end := func() error { return store.End(ctx, allocation) }
	var noted budget.Noted
	asDocumented(t, proxy, "Budgets", calls{
		{"Set", func() error {
			return store.Set(ctx, audit.Operator(time.Now()),
				budget.Budget{ID: daily.ID, Limit: 35, WarnURL: "https://example.com/budgets"})
		}},
		{"Budgets", func() error { _, err := store.Budgets(ctx, "acme"); return err }},
		{"Take", take(50)},
		{"Take, too little left", take(51)},
		{"Report", func() error { allocation.Spent = 10; return store.Report(ctx, allocation) }},
		{"Return", func() (err error) { allocation.Amount, err = store.Return(ctx, allocation, 20); return err }},
		{"Used", func() error { _, err := store.Used(ctx, []budget.Counter{daily}); return err }},
		{"Warn", func() (err error) { noted, err = store.Warn(ctx, daily, 0, time.Now()); return err }},
		{"Warn, none is due", func() error { _, err := store.Warn(ctx, daily, 0, time.Now()); return err }},
		{"Warning", func() error { _, err := store.Warning(ctx, noted.Warning.EventID()); return err }},
		{"End", end},
		{"End, again", end},
		{"Delete", func() error { return store.Delete(ctx, audit.Operator(time.Now()), daily.ID) }},
	})
}
