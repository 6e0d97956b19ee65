package budget

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

const WarnAt = 80

// Warning reports that usage of a budget reached a percentage in a window (docs/contract/budgets.md#warnings).
type Warning struct {
	State
	Percent int       // WarnAt or 100
	At      time.Time // with millisecond precision
}

const (
	warningPrefix = "warn_"
	warningDigits = 32
)

// EventID returns the same id in all processes, because each counter has one warning per percentage.
func (w Warning) EventID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		w.Account, w.Key, string(w.Period), string(w.Unit), string(w.Window), strconv.Itoa(w.Percent),
	}, "\x00")))
	return warningPrefix + hex.EncodeToString(sum[:])[:warningDigits]
}

func IsWarning(id string) bool { return strings.HasPrefix(id, warningPrefix) }

// Warnable returns the percentage of the warning that is due for the given usage and limit, or 0 if no warning is
// due. missed is an amount that a call could not reserve. If most of the limit is used and the rest is too small for
// that call, the budget counts as fully used.
func Warnable(used, limit, missed int64) (percent int) {
	switch {
	case limit == 0 || used < limit-limit/(100/(100-WarnAt)):
		return 0
	case missed > limit-used || used >= limit:
		return 100
	}
	return WarnAt
}

type Noted struct {
	// Warning.Percent is 0 unless this call recorded a warning.
	Warning Warning
	// Percent is the highest percentage recorded by this or any earlier call.
	Percent int
}

type Warnings interface {
	// Warn records the warning that is due for a counter according to Warnable, unless the same or a higher
	// percentage has already been recorded. If the budget has a WarnURL, the same commit stores the warning and
	// makes its first delivery due. Counters of deleted budgets have no warnings.
	Warn(ctx context.Context, c Counter, missed int64, at time.Time) (Noted, error)
	// Errors: fault.NotFound.
	Warning(ctx context.Context, id string) (Warning, error)
}

// Warn records due warnings for the counters of a job's claims. refused means that a counter had too little left.
func (m *Manager) Warn(ctx context.Context, claims []Claim, refused bool) {
	for _, c := range claims {
		missed := int64(0)
		if refused {
			missed = c.Amount
		}
		m.warn(ctx, c.Counter, missed)
	}
}

// warn logs and counts a warning that this call recorded. It returns the highest recorded
// percentage, or 0 if unknown.
func (m *Manager) warn(ctx context.Context, c Counter, missed int64) (percent int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	noted, err := m.config.Store.Warn(ctx, c, missed, m.config.Now())
	if err != nil {
		m.config.Logger.LogAttrs(ctx, slog.LevelWarn, "cannot record a budget warning; trying again",
			slog.String("account", c.Account), slog.String("unit", string(c.Unit)),
			slog.String("window", string(c.Window)), slog.Any("error", err))
		return 0
	}
	if w := noted.Warning; w.Percent > 0 {
		m.config.Logger.LogAttrs(ctx, slog.LevelWarn, "budget nearly or fully used",
			slog.String("account", w.Account), slog.String("key", w.Key), slog.String("unit", string(w.Unit)),
			slog.String("window", string(w.Window)), slog.Int("percent", w.Percent), slog.Int64("limit", w.Limit))
		if m.config.Warn != nil {
			m.config.Warn(c, w.Percent)
		}
	}
	return noted.Percent
}
