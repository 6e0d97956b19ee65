package ratelimit_test

import (
	"testing"
	"time"

	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/ratelimit/ratelimittest"
)

func TestWindowIsExactInAnySpan(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ratelimittest.RunWindow(t, ratelimit.NewWindow(func() time.Time { return now }),
		func(d time.Duration) { now = now.Add(d) })
}
