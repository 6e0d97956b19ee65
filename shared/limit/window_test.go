package limit_test

import (
	"testing"
	"time"

	"cutroom/shared/limit"
	"cutroom/shared/limit/limittest"
)

func TestAWindowIsExactInAnySpan(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	limittest.RunWindow(t, limit.NewWindow(func() time.Time { return now }), func(d time.Duration) { now = now.Add(d) })
}
