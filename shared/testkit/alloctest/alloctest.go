// Package alloctest measures how much memory code allocates for the bytes it receives.
package alloctest

import (
	"runtime"
	"testing"
)

const (
	// perByte is how many bytes may be allocated for each byte received, and
	// slack how many in addition.
	perByte = 20
	slack   = 64 << 10
)

// Of returns how many bytes the process allocates while work runs, freed or not.
func Of(work func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// Least returns the least of three measurements, or the first one that is at most
// enough: other goroutines of the process allocate too.
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

// Check fails the test if work allocates more than 20 bytes for each byte that it
// receives. No parallel test may run at the same time.
func Check(t testing.TB, received int, work func()) {
	t.Helper()
	if took := Least(work, perByte*received+slack); took > perByte*received+slack {
		t.Errorf("%d bytes took %d bytes of memory, %.1f for each", received, took, float64(took)/float64(received))
	}
}
