package realtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/usage"
)

const (
	// usageTime bounds one write of usage records.
	usageTime = 10 * time.Second
	// usageAge is how long records are tried that could not be written: as long
	// as a store is sure to know that it has them already (see usage.Store),
	// less what one try may take.
	usageAge = 9 * time.Minute
)

// meter records how long sessions were open. Sessions of one key and model are
// one record, written every Times.Usage.
type meter struct {
	store  Usage
	every  time.Duration
	now    func() time.Time
	newID  func() string
	logger *slog.Logger

	mu   sync.Mutex
	open map[*use]struct{}
	// counts are in no record yet.
	counts map[tally]usage.Counts

	// unsent are records that are not written yet, oldest first. They are the
	// flushing goroutine's alone.
	unsent []batch
}

// tally is what sessions are counted by.
type tally struct{ account, key, model string }

// use is an open session and how much of it is counted.
type use struct {
	tally
	elapsed func() int64
	counted usage.Counts
}

// batch is what is written together; made is when it was tried first, by a
// clock that is not set.
type batch struct {
	records []usage.Record
	made    time.Time
}

func newMeter(c Config) *meter {
	return &meter{
		store: c.Usage, every: c.Times.Usage, now: c.Now, newID: c.NewID, logger: c.Logger,
		open: map[*use]struct{}{}, counts: map[tally]usage.Counts{},
	}
}

// begin counts a session until end.
func (m *meter) begin(c *connection) *use {
	u := &use{tally: tally{c.who.Account(), c.who.Key.ID, c.model.ID}, elapsed: c.seconds}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[u] = struct{}{}
	return u
}

func (m *meter) end(u *use) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count(u)
	delete(m.open, u)
}

// count adds what is not counted of a session.
func (m *meter) count(u *use) {
	seconds := u.elapsed() - u.counted.SessionSeconds
	more := usage.Counts{Requests: 1 - u.counted.Requests, SessionSeconds: seconds}
	u.counted.Add(more)
	sum := m.counts[u.tally]
	sum.Add(more)
	m.counts[u.tally] = sum
}

// run writes records until the context ends.
func (m *meter) run(ctx context.Context) {
	ticker := time.NewTicker(m.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.flush(ctx)
		}
	}
}

// flush writes what is counted so far. What cannot be written is tried again by
// the next flush, and given up after usageAge.
func (m *meter) flush(ctx context.Context) {
	if records := m.collect(); len(records) > 0 {
		m.unsent = append(m.unsent, batch{records, time.Now()})
	}
	for len(m.unsent) > 0 {
		oldest := m.unsent[0]
		if time.Since(oldest.made) > usageAge {
			m.logger.Error("usage records of sessions are lost", "records", len(oldest.records))
			m.unsent = m.unsent[1:]
			continue
		}
		write, cancel := context.WithTimeout(context.WithoutCancel(ctx), usageTime)
		err := m.store.Add(write, oldest.records)
		cancel()
		if err != nil {
			m.logger.Warn("usage records of sessions could not be written", "records", len(oldest.records), "error", err)
			return
		}
		m.unsent = m.unsent[1:]
	}
}

// collect makes records of what is counted.
func (m *meter) collect() []usage.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	for u := range m.open {
		m.count(u)
	}
	day := usage.DayOf(m.now())
	var records []usage.Record
	for t, counts := range m.counts {
		if counts != (usage.Counts{}) {
			records = append(records, usage.Record{
				ID: m.newID(), Account: t.account, Key: t.key, Model: t.model, Day: day, Counts: counts,
			})
		}
	}
	clear(m.counts)
	return records
}
