package ratelimittest

import (
	"context"
	"testing"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/testkit/conformance"
)

// Window is what counts exactly within any span: see ratelimit.Window.
type Window interface {
	Take(ctx context.Context, name string, n int, rate ratelimit.Rate) (ratelimit.State, error)
}

// errRefused stands for a count that is not allowed.
var errRefused = fault.New(fault.Limited, "refused")

// RunWindow tests a window that has counted nothing. Pass lets its time pass,
// which stands still otherwise.
func RunWindow(t *testing.T, w Window, pass func(time.Duration)) {
	nine := ratelimit.Rate{PerSecond: 9, Burst: 9}
	take := func(name string, r ratelimit.Rate) ratelimit.State {
		t.Helper()
		s, err := w.Take(conformance.Context(t), name, 1, r)
		conformance.OK(t, err)
		return rounded(s)
	}
	for i := range 9 {
		if s := take("a", nine); !s.Allowed || s.Remaining != 8-i {
			t.Errorf("read %d: %+v", i+1, s)
		}
		pass(100 * time.Millisecond)
	}
	if s := take("a", nine); s.Allowed || s.Remaining != 0 || s.RetryAfter != 100*time.Millisecond ||
		s.Reset != 900*time.Millisecond {
		t.Errorf("the tenth within a second: %+v", s)
	}
	if s := take("b", nine); !s.Allowed {
		t.Errorf("another key: %+v", s)
	}
	pass(100 * time.Millisecond)
	if s := take("a", nine); !s.Allowed {
		t.Errorf("a second after the first: %+v", s)
	}
	if s := take("a", nine); s.Allowed {
		t.Errorf("at once after it: %+v", s)
	}
	if s := take("a", ratelimit.Rate{}); !s.Allowed {
		t.Error("no limit limits")
	}
	pass(time.Hour) // everyone is forgotten, and nobody loses by it
	if s := take("a", nine); !s.Allowed || s.Remaining != 8 {
		t.Errorf("after an hour: %+v", s)
	}
	// A steady pace below the limit is never refused.
	for range 30 {
		pass(112 * time.Millisecond)
		if s := take("c", nine); !s.Allowed {
			t.Fatalf("a steady pace: %+v", s)
		}
	}
	// Of those who come at once as many are allowed as may be.
	won := conformance.Winners(t, conformance.Race(30, func(int) error {
		s, err := w.Take(t.Context(), "d", 1, nine)
		if err == nil && !s.Allowed {
			err = errRefused
		}
		return err
	}), errRefused.Code)
	if len(won) != 9 {
		t.Errorf("%d of 30 at once were allowed, want 9", len(won))
	}
}
