// Package boottime is a clock that cannot be set: the time since this machine booted, which is the same for all of
// its processes. It keeps running while the machine sleeps, and it never jumps. It restarts at zero when the machine
// boots; [Clock.Boot] identifies the boot. A virtual machine's clock stops while the host pauses the machine.
package boottime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

type Clock struct{ boot string }

// Open fails if the system does not have the clock.
func Open() (*Clock, error) {
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("boottime: identify the boot: %w", err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(clockID, &now); err != nil {
		return nil, fmt.Errorf("boottime: read the clock: %w", err)
	}
	return &Clock{boot}, nil
}

func (c *Clock) Boot() string { return c.boot }

func (c *Clock) Now() time.Duration {
	var now unix.Timespec
	// This cannot fail, because Open has read the same clock.
	_ = unix.ClockGettime(clockID, &now)
	return time.Duration(now.Nano())
}
