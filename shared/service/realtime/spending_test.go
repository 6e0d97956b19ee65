package realtime_test

import (
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/await"
)

// noon sets the clock to the middle of a month, so that no day or month ends during the test.
func (w *world) noon() {
	now := w.clock.Now()
	year, month, _ := now.UTC().Date()
	w.later.Store(int64(time.Date(year, month, 15, 12, 0, 0, 0, time.UTC).Sub(now)))
}

// An amount that a session reserved but did not use is available to the next session.
func TestSessionsUseBudgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.noon()
	const limit = 3
	seconds := budget.Budget{
		ID: budget.ID{Account: "studio", Period: budget.Month, Unit: budget.SessionSeconds}, Limit: limit,
	}
	if err := w.budgets.Set(t.Context(), audit.Operator(time.Now()), seconds); err != nil {
		t.Fatal(err)
	}
	month := w.now()
	w.open("gen-2.5", studio).leave()
	w.active("studio", 0)
	c := w.open("gen-2.5", studio)
	ended := c.ends("insufficient_quota", websocket.StatusPolicyViolation, "A budget is used up.")
	if ended.Seconds == nil || *ended.Seconds > limit {
		t.Errorf("ended after %v seconds", ended.Seconds)
	}
	w.active("studio", 0)
	w.dial("gen-2.5", studio).rejected(websocket.StatusPolicyViolation, "A budget is used up.")
	w.open("gen-2.5", rival).leave()
	w.stop()
	used, err := w.budgets.Used(t.Context(), []budget.Counter{seconds.Counter(month)})
	if err != nil || used[0] != limit {
		t.Errorf("%d seconds are used, %v, want %d", used, err, limit)
	}
	if sum := w.used("gen-2.5", month); sum.SessionSeconds != limit || sum.Requests != 2 {
		t.Errorf("the usage is %+v", sum)
	}
}

// A session ends when a cost budget does not cover another second.
func TestSessionsAreBilled(t *testing.T) {
	t.Parallel()
	const price, limit = 20_000, 65_000_000 // 0.02 per second, so the budget is enough for three seconds
	w := newWorld(t, setup{price: price})
	w.noon()
	cost := budget.Budget{ID: budget.ID{Account: "studio", Period: budget.Month, Unit: budget.Cost}, Limit: limit}
	if err := w.budgets.Set(t.Context(), audit.Operator(time.Now()), cost); err != nil {
		t.Fatal(err)
	}
	began := w.now()
	ended := w.open("gen-2.5", studio).ends("insufficient_quota", websocket.StatusPolicyViolation, "A budget is used up.")
	if ended.Seconds == nil || *ended.Seconds != 3 {
		t.Errorf("ended after %v seconds", ended.Seconds)
	}
	w.stop()
	used, err := w.budgets.Used(t.Context(), []budget.Counter{cost.Counter(began)})
	if err != nil || used[0] != 60_000_000 {
		t.Errorf("%d are used, %v", used, err)
	}
	if sum := w.used("gen-2.5", began); sum.Cost != 60_000_000 || sum.SessionSeconds != 3 || sum.Requests != 1 {
		t.Errorf("the usage is %+v", sum)
	}
}

// A client that reconnects every moment pays for each started second.
func TestShortSessionsAreBilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.noon()
	began := w.now()
	for range 3 {
		w.open("gen-2.5", studio).leave()
	}
	w.stop()
	if sum := w.used("gen-2.5", began); sum.Requests != 3 || sum.SessionSeconds < 3 {
		t.Errorf("the usage is %+v", sum)
	}
}

// Each part of a session counts toward the day on which that part started.
func TestSessionContinuesAfterMidnight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.noon()
	const limit = 4 // so small that a session reserves one second at a time
	daily := budget.Budget{ID: budget.ID{Account: "studio", Period: budget.Day, Unit: budget.SessionSeconds}, Limit: limit}
	if err := w.budgets.Set(t.Context(), audit.Operator(time.Now()), daily); err != nil {
		t.Fatal(err)
	}
	began := w.now()
	midnight := make(chan error, 1)
	go func() { // runs as soon as one second has been reserved
		for {
			used, err := w.budgets.Used(t.Context(), []budget.Counter{daily.Counter(began)})
			if err != nil || used[0] > 0 {
				w.later.Add(int64(24 * time.Hour))
				midnight <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	ended := w.open("gen-2.5", studio).ends("insufficient_quota", websocket.StatusPolicyViolation, "A budget is used up.")
	if err := await.Receive(t, "midnight", midnight); err != nil {
		t.Fatal(err)
	}
	after := w.now()
	w.stop()
	used, err := w.budgets.Used(t.Context(), []budget.Counter{daily.Counter(began), daily.Counter(after)})
	if err != nil || used[0] < 1 || used[0] > limit || used[1] != limit {
		t.Fatalf("%d seconds are used of the two days, %v", used, err)
	}
	if ended.Seconds == nil || int64(*ended.Seconds) != used[0]+used[1] {
		t.Errorf("ended after %v seconds, of which %d were used", ended.Seconds, used)
	}
}

func (w *world) used(model string, since time.Time) (sum usage.Counts) {
	w.t.Helper()
	totals, err := w.usage.Totals(w.t.Context(), "studio", usage.DayOf(since), usage.DayOf(w.now()), usage.All)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, total := range totals {
		if total.Model == model {
			sum.Add(total.Counts)
		}
	}
	return sum
}
