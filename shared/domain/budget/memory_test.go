package budget_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/budget/budgettest"
	"cutroom/shared/domain/fault"
)

// memory is an in-memory budget.Store that can be made to fail.
type memory struct {
	now func() time.Duration
	// fail is called before and after each method that changes an allocation. An error before the
	// change prevents it. An error after it hides the result.
	fail func(after bool) error
	// taken is called after each successful Take, with the amount used and the limit.
	taken func(used, limit int64)

	mu          sync.Mutex
	calls       map[string]int
	budgets     map[budget.ID]budget.Budget
	used        map[budget.Counter]int64
	warned      map[budget.Counter]int
	warnings    map[string]budget.Warning
	allocations map[string]*memoryAllocation
}

type memoryAllocation struct {
	budget.Allocation
	renewed time.Duration
}

func newMemory(now func() time.Duration) *memory {
	return &memory{
		now: now, fail: func(bool) error { return nil }, taken: func(int64, int64) {}, calls: map[string]int{},
		budgets: map[budget.ID]budget.Budget{}, used: map[budget.Counter]int64{}, warned: map[budget.Counter]int{},
		allocations: map[string]*memoryAllocation{}, warnings: map[string]budget.Warning{},
	}
}

func (m *memory) Budgets(_ context.Context, account string) ([]budget.Budget, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls["Budgets"]++
	if err := m.fail(false); err != nil {
		return nil, err
	}
	var found []budget.Budget
	for _, b := range m.budgets {
		if b.Account == account {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b budget.Budget) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Period, b.Period), cmp.Compare(a.Unit, b.Unit))
	})
	return found, nil
}

func (m *memory) Set(_ context.Context, _ audit.Origin, b budget.Budget) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budgets[b.ID] = b
	return nil
}

func (m *memory) Delete(_ context.Context, _ audit.Origin, id budget.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.budgets[id]; !ok {
		return fault.New(fault.NotFound, "There is no such budget.")
	}
	delete(m.budgets, id)
	return nil
}

func (m *memory) Used(_ context.Context, counters []budget.Counter) ([]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := make([]int64, len(counters))
	for i, c := range counters {
		m.endDead(c)
		used[i] = m.used[c]
	}
	return used, nil
}

func (m *memory) Warn(_ context.Context, c budget.Counter, missed int64, at time.Time) (n budget.Noted, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.budgets[c.ID]
	percent := budget.Warnable(m.used[c], b.Limit, missed)
	if ok && percent > m.warned[c] {
		m.warned[c] = percent
		n.Warning = budget.Warning{State: budget.State{Budget: b, Window: c.Window, Used: m.used[c]}, Percent: percent, At: at}
		if b.WarnURL != "" {
			m.warnings[n.Warning.EventID()] = n.Warning
		}
	}
	n.Percent = m.warned[c]
	return n, nil
}

func (m *memory) Warning(_ context.Context, id string) (budget.Warning, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.warnings[id]
	if !ok {
		return w, fault.New(fault.NotFound, "There is no such warning.")
	}
	return w, nil
}

func (m *memory) endDead(c budget.Counter) {
	maps.DeleteFunc(m.allocations, func(_ string, l *memoryAllocation) bool {
		dead := l.Counter == c && m.now()-l.renewed >= budget.EndAfter
		if dead {
			m.used[c] -= l.Unused()
		}
		return dead
	})
}

func (m *memory) called(names ...string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		n += m.calls[name]
	}
	return n
}

func (m *memory) call(name string, do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[name]++
	if err := m.fail(false); err != nil {
		return err
	}
	return errors.Join(do(), m.fail(true))
}

func (m *memory) Take(_ context.Context, l budget.Allocation, limit, least, most int64) (t budget.Taken, err error) {
	err = m.call("Take", func() error {
		rest := max(limit-m.used[l.Counter], 0)
		if rest < least {
			m.endDead(l.Counter)
			rest = max(limit-m.used[l.Counter], 0)
		}
		known := m.allocations[l.ID]
		if known == nil && l.Amount > 0 {
			return budget.ErrAllocationEnded
		}
		if t = (budget.Taken{Amount: l.Amount, Remaining: rest}); rest < least {
			return nil
		}
		more := min(rest, max(least, most))
		m.used[l.Counter] += more
		m.taken(m.used[l.Counter], limit)
		if known != nil {
			more += known.Amount
		}
		l.Amount = more
		m.allocations[l.ID] = &memoryAllocation{l, m.now()}
		t = budget.Taken{Amount: l.Amount, Remaining: limit - m.used[l.Counter]}
		return nil
	})
	return t, err
}

func (m *memory) Report(_ context.Context, l budget.Allocation) error {
	return m.call("Report", func() error { return m.record(l, 0) })
}

func (m *memory) record(l budget.Allocation, back int64) error {
	known := m.allocations[l.ID]
	if known == nil {
		return budget.ErrAllocationEnded
	}
	m.used[l.Counter] -= back
	l.Amount = known.Amount - back
	m.allocations[l.ID] = &memoryAllocation{l, m.now()}
	return nil
}

func (m *memory) Return(_ context.Context, l budget.Allocation, amount int64) (left int64, err error) {
	err = m.call("Return", func() error {
		if err := m.record(l, max(min(amount, l.Amount-l.Spent), 0)); err != nil {
			return err
		}
		left = m.allocations[l.ID].Amount
		return nil
	})
	return left, err
}

func (m *memory) End(_ context.Context, l budget.Allocation) error {
	return m.call("End", func() error {
		if known := m.allocations[l.ID]; known != nil {
			l.Amount = known.Amount
			m.used[l.Counter] -= l.Unused()
			delete(m.allocations, l.ID)
		}
		return nil
	})
}

func TestMemoryStoreConforms(t *testing.T) {
	budgettest.Run(t, func(*testing.T) budgettest.Harness {
		var now time.Duration
		return budgettest.Harness{
			Store: newMemory(func() time.Duration { return now }), Pass: func(d time.Duration) { now += d },
		}
	})
}
