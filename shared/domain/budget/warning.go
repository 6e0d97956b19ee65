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

// Warning reports the used percentage of a budget in a window (docs/contract/budgets.md#warnings).
type Warning struct {
	State
	Percent int       // WarnAt or 100
	At      time.Time // with millisecond precision
}

const (
	warningPrefix = "warn_"
	warningDigits = 32
)

// EventID returns the same id in all processes, because a counter has one warning per percentage.
func (w Warning) EventID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		w.Account, w.Key, string(w.Period), string(w.Unit), string(w.Window), strconv.Itoa(w.Percent),
	}, "\x00")))
	return warningPrefix + hex.EncodeToString(sum[:])[:warningDigits]
}

func IsWarning(id string) bool { return strings.HasPrefix(id, warningPrefix) }

// Warnable returns the percentage of the warning that is due at this usage of a limit, or 0. missed
// is an amount that a call could not take. If most of a budget is used and the rest is too small
// for a call, the budget counts as fully used.
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
	// Warning.Percent is 0 if this call recorded no warning.
	Warning Warning
	// Percent is the highest percentage that this or an earlier call recorded.
	Percent int
}

type Warnings interface {
	// Warn records the warning that is due for a counter according to its budget and current usage
	// (Warnable), unless one of the same or a higher percentage was recorded. If the budget has a
	// WarnURL, the same commit stores the warning and makes its first delivery due. A counter whose
	// budget was deleted has no warnings.
	Warn(ctx context.Context, c Counter, missed int64, at time.Time) (Noted, error)
	// Errors: fault.NotFound.
	Warning(ctx context.Context, id string) (Warning, error)
}

// Warn checks for due warnings on the counters that a job took from or found insufficient.
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
