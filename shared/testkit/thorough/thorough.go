// Package thorough marks tests that take much of the time of all tests and seldom fail. They run with TEST_ALL=yes,
// which continuous integration sets: see scripts/test.sh.
package thorough

import (
	"os"
	"testing"
)

// Wanted reports whether all tests were asked for.
func Wanted() bool { return os.Getenv("TEST_ALL") != "" }

// Only skips a test unless all tests were asked for.
func Only(t *testing.T) {
	t.Helper()
	if !Wanted() {
		t.Skip("runs with TEST_ALL=yes")
	}
}
