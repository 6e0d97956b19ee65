package main

import (
	"log/slog"
	"path/filepath"
	"time"

	"cutroom/shared/platform/boottime"
	"cutroom/shared/platform/clock"
)

// machineClocks holds the wall clock, which can be changed, and the time since boot.
type machineClocks struct {
	wall    func() time.Time
	elapsed func() time.Duration
	boot    string
}

func clocksOfMachine() (machineClocks, error) {
	started, err := boottime.Open()
	if err != nil {
		return machineClocks{}, err
	}
	return machineClocks{time.Now, started.Now, started.Boot()}, nil
}

// openClock returns the server's clock, which resumes from the time at which the server last stopped.
func openClock(f dataFlag, m machineClocks, logger *slog.Logger) (*clock.Clock, error) {
	return clock.Open(clock.Config{
		Wall: m.wall, Elapsed: m.elapsed, Boot: m.boot, Path: filepath.Join(f.Data, "clock"), Logger: logger,
	})
}
