package realtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/usage"
)

// reportTime bounds a report, as a session's end waits for it.
const reportTime = time.Second

// meter reports how long sessions were open: for open ones every Times.Usage,
// and for each when it ends.
type meter struct {
	usage  Usage
	every  time.Duration
	now    func() time.Time
	logger *slog.Logger

	mu   sync.Mutex
	open map[*metered]struct{}
}

// metered is a session and what has been reported of it.
type metered struct {
	connection *connection
	reported   usage.Counts
}

func newMeter(c Config) *meter {
	return &meter{usage: c.Usage, every: c.Times.Usage, now: c.Now, logger: c.Logger, open: map[*metered]struct{}{}}
}

// begin meters a session until end is called.
func (m *meter) begin(c *connection) *metered {
	session := &metered{connection: c}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[session] = struct{}{}
	return session
}

func (m *meter) end(ctx context.Context, session *metered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.report(ctx, session)
	delete(m.open, session)
}

// run reports open sessions until the context ends.
func (m *meter) run(ctx context.Context) {
	ticker := time.NewTicker(m.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.reportAll(ctx)
		}
	}
}

func (m *meter) reportAll(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for session := range m.open {
		m.report(ctx, session)
	}
}

// report reports what has not been reported yet. Each session counts as one
// request.
func (m *meter) report(ctx context.Context, s *metered) {
	more := usage.Counts{
		Requests: 1 - s.reported.Requests, SessionSeconds: s.connection.seconds() - s.reported.SessionSeconds,
	}
	if more == (usage.Counts{}) {
		return
	}
	// Prices are in millionths of the currency, costs in billionths.
	more.Cost = more.SessionSeconds * s.connection.admission.model.SessionPrice * 1000
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	err := m.usage.Record(ctx, usage.Record{
		Account: s.connection.admission.who.Account(), Key: s.connection.admission.who.Key.ID,
		Model: s.connection.admission.model.ID, Day: usage.DayOf(m.now()), Counts: more,
	})
	if err != nil {
		m.logger.Warn("the usage of a session could not be reported", "session", s.connection.session.ID(), "error", err)
		return
	}
	s.reported.Add(more)
}
