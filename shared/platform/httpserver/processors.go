package httpserver

import (
	"os"
	"runtime"
)

// SpareProcessor gives Go's scheduler one processor more than the machine has, for a program that
// serves and computes. The scheduler checks the network when one of its processors is idle. While
// all of them compute, each step of a request waits for up to 10 ms. With a spare one, the system's
// scheduler decides, by priority and fairness, in well under a millisecond. The computing
// goroutines must leave one processor idle.
//
// A set GOMAXPROCS stays unchanged.
func SpareProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}
