package awstest

import "testing"

// T is the test that owns a local AWS. A program without testing.TB, such as a benchmark, can implement it too.
type T interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	// Fatal and Fatalf do not return.
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var _ T = testing.TB(nil)
