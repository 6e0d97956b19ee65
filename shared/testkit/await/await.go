// Package await limits all waiting in tests. A test waits for an event and never for a duration.
// The limit only ends tests that would otherwise hang. The message names the event that did not
// happen and the last state that the test saw.
package await

import (
	"context"
	"fmt"
	"testing"
	"time"
)

const (
	// Max is the timeout for one wait. An idle machine needs a hundredth of this time. Do not use
	// Max for a product timeout that affects a test's result.
	Max = 2 * time.Minute
	// MaxTest is the timeout for a build or a test with many steps.
	MaxTest      = 15 * time.Minute
	longestPause = 50 * time.Millisecond
)

// Until waits until the condition is true. After Max, the test fails with the name of the condition and the results
// of the functions in seen.
func Until(t testing.TB, what string, holds func() bool, seen ...func() any) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(Max); !holds(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("%s: did not happen within %s%s", what, Max, last(seen))
		}
		pause = min(2*pause, longestPause)
	}
}

// Value calls get until ok accepts the result, and returns that result. After Max, the test fails with the last
// value.
func Value[T any](t testing.TB, what string, get func() T, ok func(T) bool) (got T) {
	t.Helper()
	Until(t, what, func() bool { got = get(); return ok(got) }, func() any { return got })
	return got
}

// Becomes waits until get returns the wanted value. After Max, the test fails with the last value.
func Becomes[T comparable](t testing.TB, what string, want T, get func() T) {
	t.Helper()
	Value(t, fmt.Sprintf("%s: %v", what, want), get, func(got T) bool { return got == want })
}

// last returns the end of a failure message, which describes the last state if it is known.
func last(seen []func() any) (text string) {
	for _, see := range seen {
		text += fmt.Sprintf("; last seen: %+v", see())
	}
	return text
}

// Context returns the test's context with the timeout Max. Use it for a single wait.
func Context(t testing.TB) context.Context {
	t.Helper()
	return within(t, Max)
}

// TestContext returns the test's context with the timeout MaxTest. Use it for a build or a test of
// many limited steps.
func TestContext(t testing.TB) context.Context {
	t.Helper()
	return within(t, MaxTest)
}

func within(t testing.TB, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit,
		fmt.Errorf("%s: %w after %s", t.Name(), context.DeadlineExceeded, limit))
	t.Cleanup(cancel)
	return ctx
}

// Receive returns the next value from the channel. After Max, the test fails with the channel's name and the results
// of the functions in seen.
func Receive[T any](t testing.TB, what string, from <-chan T, seen ...func() any) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(Max):
		t.Fatalf("%s: did not happen within %s%s", what, Max, last(seen))
		panic("unreachable")
	}
}
