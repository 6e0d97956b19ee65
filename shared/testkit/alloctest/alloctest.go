// Package alloctest measures how much memory code allocates for the bytes it receives.
package alloctest

import (
	"runtime"
	"testing"
)

const (
	// perByte is how many bytes may be allocated per byte received. slack is how many more are allowed in total.
	perByte = 20
	slack   = 64 << 10
)

// Of returns how many bytes the process allocates while the function work runs, including bytes that are freed again.
func Of(work func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// Least returns the smallest of three measurements, because other goroutines allocate too. It stops early if a
// measurement does not exceed the given number of bytes.
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

// Check fails the test if the function work allocates more than 20 bytes per byte received, plus some slack. No
// parallel test may run at the same time.
func Check(t testing.TB, received int, work func()) {
	t.Helper()
	if took := Least(work, perByte*received+slack); took > perByte*received+slack {
		t.Errorf("%d bytes took %d bytes of memory, %.1f per byte", received, took, float64(took)/float64(received))
	}
}
