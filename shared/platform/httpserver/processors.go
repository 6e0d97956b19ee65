package httpserver

import (
	"os"
	"runtime"
)

// SpareProcessor gives Go's scheduler one more processor than the machine has, for programs that both serve and
// compute. The scheduler polls the network only when one of its processors is idle. While all of them compute, each
// step of a request waits for up to 10 ms. With a spare processor, the operating system switches to the waiting
// request in well under a millisecond. The computing goroutines must leave one processor idle.
//
// If GOMAXPROCS is set, it stays unchanged.
func SpareProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}
