package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/ratelimit"
)

// Otherwise a client could disconnect instead of waiting.
func TestDisconnectedClientWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{readTurns: ratelimit.NewTurns(2, 1).AtMost(1)}
		for range 3 {
			began := time.Now()
			ctx, disconnect := context.WithCancel(t.Context())
			_ = s.slowly(ctx, "studio", func() error {
				time.Sleep(300 * time.Millisecond)
				disconnect()
				return ctx.Err()
			})
			if took := time.Since(began); took != 600*time.Millisecond {
				t.Errorf("the turn took %v, want as long again as the read", took)
			}
		}
	})
}
