package main

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// useProcessor restricts this process, and processes that it starts later, to one processor.
func useProcessor(n int) error {
	var one unix.CPUSet
	one.Set(n)
	return runOn(&one)
}

// useProcessors lets this process, and processes that it starts later, run on all processors again.
func useProcessors() error {
	var all unix.CPUSet
	for n := range runtime.NumCPU() {
		all.Set(n)
	}
	return runOn(&all)
}

// runOn sets the processors of every thread of this process. A thread inherits its creator's
// processors; the second pass covers threads that were created during the first.
func runOn(processors *unix.CPUSet) error {
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, processors); err != nil && err != unix.ESRCH { // it may have ended
				return os.NewSyscallError("sched_setaffinity", err)
			}
		}
	}
	return nil
}
