package await

import (
	"sync"
	"testing"
	"time"
)

const (
	// A Clock is read at least once per beat. Between two reads it advances by at most longestBeat.
	beat, longestBeat = 20 * time.Millisecond, 100 * time.Millisecond
)

// Clock is a clock that stops while the machine stalls, so that no lease ends only because a test could not extend it
// in time. Waiting for a lease to end takes little longer than on the machine's clock. It is safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	// seen is the machine's time at the last read. skipped is how much time this clock has left out.
	seen    time.Time
	skipped time.Duration
}

// NewClock returns a clock that starts at the machine's time, and runs until the test ends.
func NewClock(t testing.TB) *Clock {
	c := &Clock{seen: time.Now()}
	over := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				c.Now()
			}
		}
	})
	t.Cleanup(func() {
		close(over)
		beats.Wait()
	})
	return c
}

func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if stood := now.Sub(c.seen) - longestBeat; stood > 0 {
		c.skipped += stood
	}
	c.seen = now
	return now.Add(-c.skipped)
}
