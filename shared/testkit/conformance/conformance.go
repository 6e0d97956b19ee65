// Package conformance is the harness of the conformance suites. It runs their tests, checks
// errors, shows differences, and runs races.
package conformance

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cutroom/shared/domain/fault"
	"cutroom/shared/testkit/await"
)

// Group is the part of a suite that covers one topic.
type Group[T Statement] struct {
	name  string
	tests []T
}

func About[T Statement](name string, tests []T) Group[T] { return Group[T]{name, tests} }

type Statement interface {
	// Says returns the statement, which is the test's name.
	Says() string
}

func Run[T Statement](t *testing.T, run func(t *testing.T, group string, test T), groups ...Group[T]) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.Says(), func(t *testing.T) { run(t, group.name, test) })
			}
		})
	}
}

// Context returns a context for one test, with the timeout await.MaxTest.
func Context(t testing.TB) context.Context {
	t.Helper()
	return await.TestContext(t)
}

// Tomorrow is the time at which suites start. It is in the future because a platform deletes
// expired records by its own clock, even if a suite on a busy machine still uses them.
func Tomorrow() time.Time { return time.Now().Add(24 * time.Hour).UTC().Truncate(time.Millisecond) }

func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// Same stops the test and shows the difference if the two values are not equal.
func Same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := Diff(want, got); diff != "" {
		t.Fatalf("%s differs (-want +got):\n%s", what, diff)
	}
}

// SameList is like Same, for lists. Any two empty lists are equal.
func SameList[T any](t testing.TB, what string, got, want []T) {
	t.Helper()
	if len(got)+len(want) > 0 {
		Same(t, what, got, want)
	}
}

// Diff returns the difference between two values, including unexported fields, or "" if they are
// equal. Times are equal only if their zones are, too.
func Diff(want, got any) string {
	return cmp.Diff(want, got,
		cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) && a.Location().String() == b.Location().String() }))
}

func Fails(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Fatalf("error %v, want code %q", err, code)
	}
}

// Race calls the function do n times concurrently and returns each racer's error.
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

// Winners returns the racers without an error. All others must have failed with the given code.
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
