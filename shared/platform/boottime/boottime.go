// Package boottime is a clock that nobody can set: the time since this machine started.
// All processes of the machine read the same value. It continues while a process is
// stopped and while the machine sleeps, and it never jumps. It starts again at zero when
// the machine does; [Clock.Boot] tells one start from another. The clock of a virtual
// machine stands still while its host has it paused.
package boottime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Clock counts from one start of this machine.
type Clock struct{ boot string }

// Open finds the clock. It fails if the system does not have one.
func Open() (*Clock, error) {
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("boottime: identify this start of the machine: %w", err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(clockID, &now); err != nil {
		return nil, fmt.Errorf("boottime: read the clock: %w", err)
	}
	return &Clock{boot}, nil
}

// Boot identifies the start of the machine that Now counts from.
func (c *Clock) Boot() string { return c.boot }

// Now returns the time since the machine started.
func (c *Clock) Now() time.Duration {
	var now unix.Timespec
	// It cannot fail, as Open has read the same clock.
	_ = unix.ClockGettime(clockID, &now)
	return time.Duration(now.Nano())
}
