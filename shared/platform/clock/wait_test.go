package clock_test

import (
	"context"
	"testing"
	"time"

	"cutroom/shared/platform/clock"
)

func TestWaitEndsWithContext(t *testing.T) {
	if !clock.Wait(t.Context(), time.Millisecond) {
		t.Error("a wait ended early")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if clock.Wait(ended, time.Hour) {
		t.Error("a wait outlived its context")
	}
}
