package realtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/clock"
)

// reportTime is the timeout of a usage report. It is short, because a session cannot end before its last report.
const reportTime = time.Second

// meter reports sessions' durations, at regular intervals and when they end.
type meter struct {
	usage  Usage
	every  time.Duration
	now    func() time.Time
	logger *slog.Logger

	mu   sync.Mutex
	open map[*metered]struct{}
}

type metered struct {
	connection *connection
	reported   usage.Counts
}

func newMeter(c Config) *meter {
	return &meter{usage: c.Usage, every: c.Times.Usage, now: c.Now, logger: c.Logger, open: map[*metered]struct{}{}}
}

func (m *meter) begin(c *connection) *metered {
	session := &metered{connection: c}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[session] = struct{}{}
	return session
}

// end reports a session's remaining seconds and returns its total.
func (m *meter) end(ctx context.Context, session *metered) (seconds int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seconds = session.connection.billed()
	m.report(ctx, session, seconds)
	delete(m.open, session)
	return seconds
}

func (m *meter) run(ctx context.Context) {
	for clock.Wait(ctx, m.every) {
		m.reportAll(ctx)
	}
}

func (m *meter) reportAll(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for session := range m.open {
		m.report(ctx, session, session.connection.seconds())
	}
}

// report reports the seconds that have not been reported yet. A session counts as one request.
func (m *meter) report(ctx context.Context, s *metered, seconds int64) {
	more := usage.Counts{
		Requests: 1 - s.reported.Requests, SessionSeconds: seconds - s.reported.SessionSeconds,
	}
	if more == (usage.Counts{}) {
		return
	}
	more.Cost = costOf(s.connection.admission.model, more.SessionSeconds)
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	who := s.connection.admission.who
	err := m.usage.Record(ctx, usage.Record{
		Account: who.Account(), Key: usage.KeyOf(who.Key.ID, who.Scope().Label),
		Model: s.connection.admission.model.ID, Day: usage.DayOf(m.now()), Counts: more,
	})
	if err != nil {
		m.logger.Warn("cannot report the usage of a session", "session", s.connection.session.ID(), "error", err)
		return
	}
	s.reported.Add(more)
}

// costOf returns the cost of a session's seconds, in billionths of a currency unit.
func costOf(model *catalog.Model, seconds int64) int64 { return seconds * model.SessionPrice * 1000 }
