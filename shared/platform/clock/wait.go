package clock

import (
	"context"
	"time"
)

// Wait waits, and reports whether it waited the whole time: it ends with the context.
func Wait(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
