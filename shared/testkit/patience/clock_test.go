package patience

import (
	"testing"
	"time"
)

// What passes while nothing runs does not pass by the clock.
func TestClock(t *testing.T) {
	c := &Clock{seen: time.Now().Add(-time.Hour)} // nobody has looked at it for an hour
	began := c.Now()
	if behind := time.Since(began); behind < time.Hour-longestBeat {
		t.Errorf("it is %v behind after an hour in which nothing ran", behind)
	}
	running := NewClock(t)
	first := running.Now()
	Until(t, "the clock goes on", func() bool { return running.Now().Sub(first) > 3*longestBeat })
}
