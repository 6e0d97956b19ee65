// Package boottime is a clock that cannot be set: the time since this machine booted, which is the same for all of
// its processes. It keeps running while the machine sleeps, and it never jumps. It restarts at zero when the machine
// boots; [Clock.Boot] identifies the boot. A virtual machine's clock stops while the host pauses the machine.
package boottime

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

type Clock struct{ boot string }

// Open fails if the system does not have the clock.
func Open() (*Clock, error) {
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("boottime: identify the boot: %w", err)
	}
	now, err := read()
	if err != nil {
		return nil, fmt.Errorf("boottime: read the clock: %w", err)
	}
	ahead.CompareAndSwap(0, int64(now-time.Since(opened)))
	return &Clock{boot}, nil
}

func (c *Clock) Boot() string { return c.boot }

// Now reads Go's monotonic clock, which takes no system call, and adds the time that the machine has slept. It measures
// that time again after a millisecond.
func (c *Clock) Now() time.Duration {
	now := time.Since(opened)
	if now-time.Duration(measured.Load()) >= time.Millisecond && measuring.TryLock() {
		measured.Store(int64(now))
		total, _ := read() // cannot fail, because Open has read the same clock
		ahead.Store(max(ahead.Load(), int64(total-time.Since(opened))))
		measuring.Unlock()
	}
	return now + time.Duration(ahead.Load())
}

// ahead is how far this clock is ahead of the time since `opened`, and never decreases. measured is when it was last
// measured, in nanoseconds since `opened`.
var (
	opened          = time.Now()
	measuring       sync.Mutex
	ahead, measured atomic.Int64
)
