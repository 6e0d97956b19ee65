package main_test

import (
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/testkit/await"
)

// A crashed instance's sessions count for up to 45 seconds (docs/contract/limits.md#realtime-limits).
func TestCrashedInstanceFreesItsSessions(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4)
	crashed, other := f.start(), f.start()
	for range 3 {
		f.open(crashed)
	}
	stays := f.open(other)
	f.becomes(4)
	f.isFull(other)
	crashed.kill()
	end := time.Now().Add(45 * time.Second)
	if f.active() != 4 {
		t.Error("the sessions were not counted until their lease expired")
	}
	for {
		late := time.Now().After(end)
		active := f.active()
		if active == 1 {
			break
		}
		if late {
			t.Fatalf("after 45 s %d sessions count", active)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for range 3 {
		f.open(other)
	}
	f.isFull(other)
	f.becomes(4)
	stays.edit(t)
}

const partingTime = time.Second

// isNotifiedOfTheEnd checks that the client is notified of its instance's shutdown, unless the
// machine stalled for longer than the shutdown takes.
func (c *client) isNotifiedOfTheEnd(t *testing.T, stopped time.Time) {
	t.Helper()
	err := c.await(await.Context(t))
	if websocket.CloseStatus(err) != websocket.StatusGoingAway && time.Since(stopped) < partingTime {
		t.Errorf("the session ended with %v", err)
	}
}
