package main_test

import (
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/testkit/patience"
)

// The sessions of a crashed instance are counted for up to 45 seconds
// (docs/contract/limits.md#realtime-limits), and then no longer.
func TestACrashedInstance(t *testing.T) {
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
		t.Error("the sessions are not counted until their lease is old")
	}
	for {
		late := time.Now().After(end)
		active := f.active()
		if active == 1 {
			break
		}
		if late {
			t.Fatalf("after 45 s there are %d sessions", active)
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

// partingTime is the time of a stopping instance to notify its sessions.
const partingTime = time.Second

// isToldOfTheEnd requires that the client learns of its instance's stop, unless the machine stalled for
// that long.
func (c *client) isToldOfTheEnd(t *testing.T, stopped time.Time) {
	t.Helper()
	err := c.await(patience.Context(t))
	if websocket.CloseStatus(err) != websocket.StatusGoingAway && time.Since(stopped) < partingTime {
		t.Errorf("the end was %v", err)
	}
}
