package budget

import (
	"context"
	"time"
)

type State struct {
	Budget
	Window Window
	Used   int64
}

// Remaining returns the amount left, or 0 if usage exceeds a lowered limit.
func (s State) Remaining() int64 { return max(s.Limit-s.Used, 0) }

func StatesOf(ctx context.Context, store Budgets, budgets []Budget, at time.Time) ([]State, error) {
	counters := make([]Counter, len(budgets))
	for i, b := range budgets {
		counters[i] = b.Counter(at)
	}
	used, err := store.Used(ctx, counters)
	if err != nil {
		return nil, err
	}
	states := make([]State, len(budgets))
	for i, b := range budgets {
		states[i] = State{b, counters[i].Window, used[i]}
	}
	return states, nil
}
