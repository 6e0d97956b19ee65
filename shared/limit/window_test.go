package limit_test

import (
	"testing"
	"time"

	"cutroom/shared/limit"
)

func TestAWindowIsExactInAnySpan(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := limit.NewWindow(func() time.Time { return now })
	nine := limit.Rate{PerSecond: 9, Burst: 9}
	take := func(name string, r limit.Rate) limit.State {
		s, err := w.Take(t.Context(), name, 1, r)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for i := range 9 {
		if s := take("a", nine); !s.Allowed || s.Remaining != 8-i {
			t.Errorf("read %d: %+v", i+1, s)
		}
		now = now.Add(100 * time.Millisecond)
	}
	if s := take("a", nine); s.Allowed || s.Remaining != 0 || s.RetryAfter != 100*time.Millisecond || s.Reset != 900*time.Millisecond {
		t.Errorf("the tenth within a second: %+v", s)
	}
	if s := take("b", nine); !s.Allowed {
		t.Errorf("another key: %+v", s)
	}
	now = now.Add(100 * time.Millisecond)
	if s := take("a", nine); !s.Allowed {
		t.Errorf("a second after the first: %+v", s)
	}
	if s := take("a", nine); s.Allowed {
		t.Errorf("at once after it: %+v", s)
	}
	if s := take("a", limit.Rate{}); !s.Allowed {
		t.Error("no limit limits")
	}
	now = now.Add(time.Hour) // everyone is forgotten, and nobody loses by it
	if s := take("a", nine); !s.Allowed || s.Remaining != 8 {
		t.Errorf("after an hour: %+v", s)
	}
	// A steady pace below the limit is never refused.
	for range 100 {
		now = now.Add(112 * time.Millisecond)
		if s := take("c", nine); !s.Allowed {
			t.Fatalf("a steady pace: %+v", s)
		}
	}
}
