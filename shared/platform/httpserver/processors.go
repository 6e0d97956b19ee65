package httpserver

import (
	"os"
	"runtime"
)

// SpareProcessor gives Go's scheduler one processor more than the machine has, for a
// program that serves and computes. The scheduler looks at the network when one of its
// processors is idle; while all of them compute, a request waits for up to 10 ms with each
// of its steps. With one to spare the system decides who runs, by a thread's priority and
// by who has had little, in well under a millisecond. What computes must leave one idle.
//
// If GOMAXPROCS is set, it stays as it is.
func SpareProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}
