package cost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"cutroom/shared/app/awscost"
	"cutroom/shared/testkit/awstest"
)

// trial stands in for the test that a local AWS belongs to.
type trial struct {
	folder string

	mu       sync.Mutex
	cleanups []func()
	failures []error
}

var _ awstest.T = (*trial)(nil)

// try calls a function with a trial, ends everything that the function started, and
// returns what went wrong. Temporary files are in the folder, which belongs to the
// caller.
func try(folder string, f func(*trial) error) error {
	t := &trial{folder: folder}
	done := make(chan struct{})
	// A goroutine of its own, because Fatal ends it.
	go func() {
		defer close(done)
		defer t.clean()
		if err := f(t); err != nil {
			t.fail(err)
		}
	}()
	<-done
	return errors.Join(t.failures...)
}

func (t *trial) clean() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

func (t *trial) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, err)
}

func (t *trial) Helper() {}

func (t *trial) TempDir() string {
	folder, err := os.MkdirTemp(t.folder, "cost-")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func (t *trial) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *trial) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

func (t *trial) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (t *trial) Errorf(format string, args ...any) { t.fail(fmt.Errorf(format, args...)) }

func (t *trial) Fatal(args ...any) {
	t.fail(errors.New(fmt.Sprint(args...)))
	runtime.Goexit()
}

func (t *trial) Fatalf(format string, args ...any) {
	t.fail(fmt.Errorf(format, args...))
	runtime.Goexit()
}

// Measure counts and measures everything. Temporary files are in the folder. It runs in
// the repository's folder, and needs the test tools (scripts/install-test-tools.sh) and
// the tools that build the functions and the CDK app.
//
// Errors: a tool is missing; something did not work.
func Measure(ctx context.Context, folder string) (awscost.Counts, error) {
	var counts awscost.Counts
	err := try(folder, func(t *trial) error {
		w, err := newWorld(ctx, t)
		if err != nil {
			return err
		}
		deployed, err := w.describe(ctx)
		if err != nil {
			return err
		}
		counts = deployed.counts()
		w.memory, w.accessLog = deployed.memory, deployed.accessLog
		if counts.Scenarios, err = w.scenarios(ctx); err != nil {
			return err
		}
		counts.WorkMinute, err = w.workMinute(ctx)
		return err
	})
	return counts, err
}
