package ratelimit_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
)

func cost(t *testing.T, f *ratelimit.Failures, name string) time.Duration {
	t.Helper()
	began := time.Now()
	if err := f.Failed(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func TestFailureDelaysGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := ratelimit.NewFailures(time.Now)
		for i := range 10 {
			if took := cost(t, f, "a"); took != 0 {
				t.Errorf("failure %d costs %s", i, took)
			}
		}
		for i, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000} {
			if took := cost(t, f, "a"); took != want*time.Millisecond {
				t.Errorf("failure %d beyond the free ones costs %s, want %s", i+1, took, want*time.Millisecond)
			}
		}
		if took := cost(t, f, "b"); took != 0 {
			t.Errorf("another name's first failure costs %s", took)
		}
		for range 10 {
			if took := cost(t, f, "a"); took > 5*time.Second || took < 3*time.Second {
				t.Errorf("a later failure costs %s", took)
			}
		}
		time.Sleep(5 * time.Minute)
		if took := cost(t, f, "a"); took != 0 {
			t.Errorf("much later, a failure costs %s", took)
		}
	})
}

func TestConcurrentFailuresGrantNoExtraAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := ratelimit.NewFailures(time.Now)
		for range 17 {
			cost(t, f, "a")
		}
		ended := make(chan error, 8)
		for range 8 {
			go func() { ended <- f.Failed(t.Context(), "a") }()
		}
		synctest.Wait()
		for _, err := range []error{f.Admit("a"), f.Failed(t.Context(), "a")} {
			if of, ok := err.(*fault.Error); !ok || of.Code != fault.Limited || of.RetryAfter != 5*time.Second {
				t.Errorf("one more concurrent failure: %v", err)
			}
		}
		if err := f.Admit("b"); err != nil {
			t.Errorf("another name: %v", err)
		}
		for range 8 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if err := f.Admit("a"); err != nil {
			t.Errorf("after the waits: %v", err)
		}
	})
}

func TestFailureEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := ratelimit.NewFailures(time.Now)
		for range 20 {
			cost(t, f, "a")
		}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		began := time.Now()
		if err := f.Failed(ctx, "a"); err != nil || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestNumberOfNamesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := ratelimit.NewFailures(time.Now)
		for range 10 {
			cost(t, f, "first")
		}
		for i := range 30_000 {
			cost(t, f, fmt.Sprint(i))
		}
		if took := cost(t, f, "first"); took != 0 {
			t.Errorf("a forgotten name costs %s", took)
		}
	})
}

func TestFailuresOfManyNamesRejectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := ratelimit.NewFailures(time.Now)
		fail := func(name string) (err error, took time.Duration) {
			began := time.Now()
			err = f.Failed(t.Context(), name)
			return err, time.Since(began)
		}
		for i := range ratelimit.MaxWaiting {
			for range 11 {
				go fail(fmt.Sprint(i))
			}
		}
		for range 10 {
			fail("another")
		}
		synctest.Wait()
		err, took := fail("another")
		if limited, ok := err.(*fault.Error); !ok || limited.Code != fault.Limited || took > 0 {
			t.Errorf("while %d failures wait, another one gets %v after %v", ratelimit.MaxWaiting, err, took)
		}
		if f.Admit("another") == nil || f.Admit("new") != nil {
			t.Error("further guesses are free, or a caller without failures is rejected")
		}
	})
}
