// Package busytest is for tests that depend on real time, such as a pause that must be longer than a timeout. No
// time limit is both short enough for every run and long enough for every busy machine.
package busytest

import (
	"testing"
	"time"
)

// enough is long enough for even the busiest machine to complete any step of a test.
const enough = 30 * time.Second

// Try runs a check with a duration. While the check fails, Try repeats it with ten times the duration, up to half
// a minute. A busy machine passes with a longer duration. A real failure occurs with every duration.
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
