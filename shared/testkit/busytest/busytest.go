// Package busytest is for tests that depend on real time, such as a pause that a timeout must
// outlast. No time limit is both short enough for every run and long enough for every busy machine.
package busytest

import (
	"testing"
	"time"
)

// enough is a time in which the busiest machine completes any step of a test.
const enough = 30 * time.Second

// Try runs a check with a duration. While the check fails, Try repeats it with ten times the
// duration, up to a duration of half a minute or more. A quiet machine passes with the first
// duration, and a busy machine passes with a longer one. A real failure fails with each.
func Try(t testing.TB, first time.Duration, check func(d time.Duration) error) {
	t.Helper()
	for d := first; ; d *= 10 {
		err := check(d)
		if err == nil {
			return
		}
		if d >= enough {
			t.Fatalf("with %v: %v", d, err)
		}
		t.Logf("with %v: %v", d, err)
	}
}
