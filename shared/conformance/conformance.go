// Package conformance holds what the conformance suites share: how they judge
// errors, and how they let callers race.
package conformance

import (
	"sync"
	"testing"

	"cutroom/shared/fault"
)

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
