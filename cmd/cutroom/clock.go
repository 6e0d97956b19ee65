package main

import (
	"log/slog"
	"path/filepath"
	"time"

	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/clock"
)

// machineClocks are those of the machine: one that is set, and one that nobody
// sets, since the start of the machine that boot names.
type machineClocks struct {
	wall    func() time.Time
	elapsed func() time.Duration
	boot    string
}

// clocksOfMachine returns the clocks of the machine that the program runs on.
func clocksOfMachine() (machineClocks, error) {
	started, err := boottime.Open()
	if err != nil {
		return machineClocks{}, err
	}
	return machineClocks{time.Now, started.Now, started.Boot()}, nil
}

// openClock makes the clock of the server, which goes on from where it was.
func openClock(f dataFlag, m machineClocks, logger *slog.Logger) (*clock.Clock, error) {
	return clock.Open(clock.Config{
		Wall: m.wall, Elapsed: m.elapsed, Boot: m.boot, Path: filepath.Join(f.Data, "clock"), Logger: logger,
	})
}
