// Package allocated measures in tests how much memory the handling of outside bytes takes.
package allocated

import (
	"runtime"
	"testing"
)

const (
	// perByte is how many bytes a decoder may allocate for each byte that it receives, and
	// atLeast how many it may allocate in any case.
	perByte, atLeast = 20, 16 << 10
)

// Check fails the test if a call that handles received bytes allocates more than 20 times as
// many bytes, and more than 16 KiB.
func Check(t testing.TB, received int, call func()) {
	t.Helper()
	if took := By(call); took > max(uint64(perByte*received), atLeast) {
		t.Errorf("%d bytes received take %d bytes of memory, %d for each", received, took, took/uint64(received))
	}
}

// By returns how many bytes a call allocates, of three calls the one with the fewest: other
// goroutines allocate too.
func By(call func()) (least uint64) {
	for i := range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		call()
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; i == 0 || bytes < least {
			least = bytes
		}
	}
	return least
}
