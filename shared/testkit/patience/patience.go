// Package patience bounds what tests wait for, in one place. A test waits for an event, and
// never for a time: the bound exists only to end a test that would hang, with a message that
// names what did not come.
package patience

import (
	"context"
	"testing"
	"time"
)

// Max bounds a wait that is over as soon as something happens. It is far above what anything
// takes on a machine that does forty things at once, where one wait may take a hundred times
// as long as on a quiet one, and well below the -timeout of go test, which names no wait. A
// bound that decides what a test sees, such as a product's timeout that a test shortens, is
// none of this.
const Max = 30 * time.Minute

// often is the pause between two looks at a condition.
const often = 5 * time.Millisecond

// Until waits until the condition holds. The test fails at once if it never does; what names
// it in the message.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Max); !holds(); time.Sleep(often) {
		if time.Now().After(end) {
			t.Fatalf("%s: it has not come after %s", what, Max)
		}
	}
}

// Context returns the test's context, which ends after Max.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Max)
	t.Cleanup(cancel)
	return ctx
}

// Receive returns what comes through the channel next. The test fails at once if nothing
// does; what names it in the message.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(Max):
		t.Fatalf("%s: it has not come after %s", what, Max)
		panic("unreachable")
	}
}
