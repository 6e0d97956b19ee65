package main

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// useProcessor pins this process, and child processes started later, to one CPU.
func useProcessor(n int) error {
	var one unix.CPUSet
	one.Set(n)
	return runOn(&one)
}

// useProcessors lets this process, and child processes started later, run on all CPUs again.
func useProcessors() error {
	var all unix.CPUSet
	for n := range runtime.NumCPU() {
		all.Set(n)
	}
	return runOn(&all)
}

// runOn sets the CPU affinity of every thread of this process. A new thread inherits its creator's
// affinity; the second pass covers threads created during the first.
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
			if err := unix.SchedSetaffinity(id, processors); err != nil && err != unix.ESRCH { // the thread is gone
				return os.NewSyscallError("sched_setaffinity", err)
			}
		}
	}
	return nil
}
