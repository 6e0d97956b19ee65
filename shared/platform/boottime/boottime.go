// Package boottime is a clock that nobody sets: the time since this machine was
// started. All processes of the machine read the same, it goes on while a
// process is stopped and while the machine sleeps, and it never jumps. It starts
// over when the machine does, which [Clock.Boot] tells.
//
// The clock of a virtual machine stands still while its host has it paused.
package boottime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the clock of this machine since one start of it.
type Clock struct{ boot string }

// Open finds the clock.
//
// Errors: the system does not have one.
func Open() (*Clock, error) {
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("uptime: tell this start of the machine from others: %w", err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(clockID, &now); err != nil {
		return nil, fmt.Errorf("uptime: read the clock: %w", err)
	}
	return &Clock{boot}, nil
}

// Boot names the start of the machine that Now counts from.
func (c *Clock) Boot() string { return c.boot }

// Now is the time since the machine was started.
func (c *Clock) Now() time.Duration {
	var now unix.Timespec
	// It cannot fail, as Open has read the same clock.
	_ = unix.ClockGettime(clockID, &now)
	return time.Duration(now.Nano())
}
