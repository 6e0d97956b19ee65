package realtime_test

import (
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/usage"
)

// Sessions use up a budget of seconds to its end, and not beyond: then they end, and no
// other begins. What a session has reserved and not used is there for the next.
func TestSessionsDrawFromBudgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	const limit = 3
	seconds := budget.Budget{
		ID: budget.ID{Account: "studio", Period: budget.Month, Unit: budget.SessionSeconds}, Limit: limit,
	}
	if err := w.budgets.Set(t.Context(), audit.Operator(time.Now()), seconds); err != nil {
		t.Fatal(err)
	}
	month := time.Now()
	w.open("gen-2.5", studio).leave()
	w.active("studio", 0)
	c := w.open("gen-2.5", studio)
	ended := c.ends("insufficient_quota", websocket.StatusPolicyViolation, "A budget is used up.")
	if ended.Seconds == nil || *ended.Seconds > limit {
		t.Errorf("ended after %v seconds", ended.Seconds)
	}
	w.active("studio", 0)
	late := w.dial("gen-2.5", studio)
	if m := late.next(); m.Type != "error" || m.Error != "A budget is used up." {
		t.Errorf("another session: %+v", m)
	}
	late.ends("", websocket.StatusPolicyViolation, "A budget is used up.")
	w.open("gen-2.5", rival).leave()
	w.stop()
	used, err := w.budgets.Used(t.Context(), []budget.Counter{seconds.Counter(month)})
	if err != nil || used[0] != limit {
		t.Errorf("%d seconds are used, %v, want %d", used, err, limit)
	}
	totals, err := w.usage.Totals(t.Context(), "studio", usage.DayOf(month), usage.DayOf(time.Now()))
	var sum usage.Counts
	for _, total := range totals {
		sum.Add(total.Counts)
	}
	if err != nil || sum.SessionSeconds != limit || sum.Requests != 2 {
		t.Errorf("the usage is %+v, %v", sum, err)
	}
}
