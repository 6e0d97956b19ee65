package limit_test

import (
	"testing"
	"time"

	"cutroom/shared/limit"
	"cutroom/shared/limit/limittest"
)

func TestLimiter(t *testing.T) {
	limittest.Run(t, func(*testing.T) limittest.Harness {
		now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		return limittest.Harness{
			Limiter: limit.New(func() time.Time { return now }),
			Pass:    func(d time.Duration) { now = now.Add(d) },
		}
	})
}
