// Package alloctest measures how much memory code allocates for the bytes it receives.
package alloctest

import (
	"runtime"
	"testing"
)

const (
	// perByte is the number of bytes that may be allocated per received byte, and slack is an
	// additional number.
	perByte = 21 // candidates take 20.4 in the WebRTC library
	slack   = 64 << 10
)

// Of returns the number of bytes that the process allocates while work runs, even if they are
// freed.
func Of(work func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// Least returns the smallest of three measurements, or the first that is at most enough, because
// other goroutines of the process also allocate.
func Least(work func(), enough int) int {
	least := Of(work)
	for range 2 {
		if least <= enough {
			break
		}
		least = min(least, Of(work))
	}
	return least
}

// Check fails the test if work allocates more than 20 bytes per received byte. No parallel test
// may run at the same time.
func Check(t testing.TB, received int, work func()) {
	t.Helper()
	if took := Least(work, perByte*received+slack); took > perByte*received+slack {
		t.Errorf("%d bytes took %d bytes of memory, %.1f per byte", received, took, float64(took)/float64(received))
	}
}
