// Package conformance holds what the conformance suites share: how they run, how
// they judge errors, and how they let callers race.
package conformance

import (
	"context"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
)

// Group is the part of a suite that is about one thing.
type Group[T Statement] struct {
	name  string
	tests []T
}

// About makes a group.
func About[T Statement](name string, tests []T) Group[T] { return Group[T]{name, tests} }

// Statement is a test that is one statement about an interface.
type Statement interface {
	// Says gives the statement.
	Says() string
}

// Run runs every test of the groups as a test of its own.
func Run[T Statement](t *testing.T, run func(t *testing.T, group string, test T), groups ...Group[T]) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.Says(), func(t *testing.T) { run(t, group.name, test) })
			}
		})
	}
}

// Context gives a context for one test: it ends after a minute, so that nothing
// hangs.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// OK ends the test at an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// Fails ends the test unless the error has the code.
func Fails(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Fatalf("error %v, want one of code %q", err, code)
	}
}

// Race runs a function so many times at once and gives the errors in order.
func Race(n int, do func(racer int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for racer := range n {
		all.Go(func() {
			<-start
			errs[racer] = do(racer)
		})
	}
	close(start)
	all.Wait()
	return errs
}

// Winners gives who got no error; all others must have one of the code.
func Winners(t testing.TB, errs []error, code fault.Code) []int {
	t.Helper()
	var won []int
	for racer, err := range errs {
		if err == nil {
			won = append(won, racer)
		} else {
			Fails(t, err, code)
		}
	}
	return won
}
