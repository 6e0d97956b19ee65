package ratelimit_test

import (
	"testing"
	"time"

	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/ratelimit/ratelimittest"
)

func TestLimiterConforms(t *testing.T) {
	ratelimittest.Run(t, func(*testing.T) ratelimittest.Harness {
		now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		return ratelimittest.Harness{
			Limiter: ratelimit.New(func() time.Time { return now }),
			Pass:    func(d time.Duration) { now = now.Add(d) },
		}
	})
}
