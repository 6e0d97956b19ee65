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

// WarnAt is the percentage at which the first warning is due.
const WarnAt = 80

// Warning says how much of a budget is used in a window
// (docs/contract/budgets.md#warnings).
type Warning struct {
	// State is that of the moment when the warning was noted.
	State
	// Percent is WarnAt or 100.
	Percent int
	// At is when it was noted, to the millisecond.
	At time.Time
}

const (
	// warningPrefix begins the ids of warnings.
	warningPrefix = "warn_"
	// warningDigits is how many hexadecimal digits follow it.
	warningDigits = 32
)

// EventID returns the id of the warning. There is one of each percentage for each counter, so
// it is the same whoever notes it.
func (w Warning) EventID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		w.Account, w.Key, string(w.Period), string(w.Unit), string(w.Window), strconv.Itoa(w.Percent),
	}, "\x00")))
	return warningPrefix + hex.EncodeToString(sum[:])[:warningDigits]
}

// IsWarning reports whether an id is that of a warning.
func IsWarning(id string) bool { return strings.HasPrefix(id, warningPrefix) }

// Warnable returns the percentage that a warning is due for by what is used of a limit, 0
// if none is. missed is what somebody wanted to take besides, and could not: a budget
// that has too little left for a call is all used, once most of it is.
func Warnable(used, limit, missed int64) (percent int) {
	switch {
	case limit == 0 || used < limit-limit/(100/(100-WarnAt)):
		return 0
	case missed > limit-used || used >= limit:
		return 100
	}
	return WarnAt
}

// Noted is what a store knows of the warnings of a counter.
type Noted struct {
	// Warning is the one that the call has noted; its Percent is 0 if it has noted none.
	Warning Warning
	// Percent is the highest that was noted, now or before.
	Percent int
}

// Warnings keeps which warnings were due, and those that somebody is to be told of.
type Warnings interface {
	// Warn notes the warning that is due for a counter by its budget and by what is used of
	// it now (Warnable), unless one of as much or more was noted before. Where the budget
	// has a WarnURL the warning is kept for its receiver by the same commit, which makes the
	// first attempt to tell it due. A counter whose budget was deleted has no warnings.
	Warn(ctx context.Context, c Counter, missed int64, at time.Time) (Noted, error)
	// Warning returns a warning that was kept for a receiver.
	//
	// Errors: fault.NotFound.
	Warning(ctx context.Context, id string) (Warning, error)
}

// Warn looks whether warnings are due for the counters that a job has taken from, or has
// found too little left of.
func (k *Keeper) Warn(ctx context.Context, claims []Claim, refused bool) {
	for _, c := range claims {
		missed := int64(0)
		if refused {
			missed = c.Amount
		}
		k.warn(ctx, c.Counter, missed)
	}
}

// warn looks whether a warning is due, and returns the highest percentage that was noted,
// 0 if that is not known. One that it has noted itself it logs and counts.
func (k *Keeper) warn(ctx context.Context, c Counter, missed int64) (percent int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	noted, err := k.config.Store.Warn(ctx, c, missed, k.config.Now())
	if err != nil {
		k.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a warning of a budget was not noted; trying again",
			slog.String("account", c.Account), slog.String("unit", string(c.Unit)),
			slog.String("window", string(c.Window)), slog.Any("error", err))
		return 0
	}
	if w := noted.Warning; w.Percent > 0 {
		k.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a budget is nearly or all used",
			slog.String("account", w.Account), slog.String("key", w.Key), slog.String("unit", string(w.Unit)),
			slog.String("window", string(w.Window)), slog.Int("percent", w.Percent), slog.Int64("limit", w.Limit))
		if k.config.Warn != nil {
			k.config.Warn(c, w.Percent)
		}
	}
	return noted.Percent
}
