package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway"
)

// words counts words, which lets tests distinguish the gateway's count from an upstream's.
type words struct{ bytes *atomic.Int64 }

func (w words) Count(text string) int {
	w.bytes.Add(int64(len(text)))
	return len(strings.Fields(text))
}

type meter struct {
	mu      sync.Mutex
	records []usage.Record
	fail    error
}

func (m *meter) Record(_ context.Context, r usage.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, r)
	return m.fail
}

func (m *meter) Totals(
	_ context.Context, account string, first, last usage.Day, by usage.Columns,
) ([]usage.Total, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sums := usage.Sums{}
	for _, r := range m.records {
		if r.Account == account && first <= r.Day && r.Day <= last {
			total := usage.Total{Day: r.Day, Model: r.Model, Key: r.Key, Counts: r.Counts}
			if err := sums.Add(total, by); err != nil {
				return nil, err
			}
		}
	}
	return sums.Totals(), nil
}

func (w *world) recorded(n int) []usage.Record {
	w.t.Helper()
	var got []usage.Record
	w.eventually(fmt.Sprintf("%d records", n), func() bool {
		w.meter.mu.Lock()
		defer w.meter.mu.Unlock()
		got = slices.Clone(w.meter.records)
		return len(got) >= n
	})
	if len(got) > n {
		w.t.Errorf("%d records, want %d: %+v", len(got), n, got)
	}
	return got
}

type observer struct {
	mu          sync.Mutex
	completions []gateway.Completion
	attempts    []gateway.Attempt
}

func (o *observer) Completed(c gateway.Completion) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.completions = append(o.completions, c)
}

func (o *observer) Attempted(a gateway.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attempts = append(o.attempts, a)
}

func (w *world) completed(n int) []gateway.Completion {
	w.t.Helper()
	var got []gateway.Completion
	w.eventually(fmt.Sprintf("%d completions", n), func() bool {
		w.observer.mu.Lock()
		defer w.observer.mu.Unlock()
		got = slices.Clone(w.observer.completions)
		return len(got) >= n
	})
	return got
}

func (w *world) outcomes() []string {
	w.observer.mu.Lock()
	defer w.observer.mu.Unlock()
	var all []string
	for _, a := range w.observer.attempts {
		all = append(all, a.Upstream+": "+string(a.Outcome))
	}
	return all
}
