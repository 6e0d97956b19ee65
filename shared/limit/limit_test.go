package limit_test

import (
	"sync"
	"testing"
	"time"

	"cutroom/shared/limit"
)

func TestTake(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := limit.New(func() time.Time { return now })
	take := func(name string, n int, r limit.Rate) limit.State {
		s, err := l.Take(t.Context(), name, n, r)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := limit.Rate{PerSecond: 2, Burst: 3}
	for i := range 3 {
		if s := take("a", 1, r); !s.Allowed || s.Remaining != 2-i {
			t.Errorf("call %d: %+v", i+1, s)
		}
	}
	s := take("a", 1, r)
	if s.Allowed || s.Remaining != 0 || s.RetryAfter != 500*time.Millisecond || s.Reset != 1500*time.Millisecond {
		t.Errorf("over the burst: %+v", s)
	}
	if s := take("b", 1, r); !s.Allowed {
		t.Error("another account is limited too")
	}
	if s := take("a", 1, limit.Rate{}); !s.Allowed {
		t.Error("no limit limits")
	}
	now = now.Add(500 * time.Millisecond)
	if s := take("a", 1, r); !s.Allowed {
		t.Errorf("after RetryAfter: %+v", s)
	}
	now = now.Add(time.Hour) // everyone is forgotten, and nobody loses by it
	if s := take("a", 1, r); !s.Allowed || s.Remaining != 2 {
		t.Errorf("after an hour: %+v", s)
	}
}

func TestChargeIsADebt(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := limit.New(func() time.Time { return now })
	r := limit.PerMinute(60)
	if s, err := l.Charge(t.Context(), "a", 150, r); err != nil || s.Remaining != 0 || s.RetryAfter != 91*time.Second {
		t.Errorf("charged 150 of 60 a minute: %+v, %v", s, err)
	}
	now = now.Add(90 * time.Second)
	if s, _ := l.Take(t.Context(), "a", 1, r); s.Allowed {
		t.Error("the debt is forgotten before it is paid")
	}
	now = now.Add(time.Second)
	if s, _ := l.Take(t.Context(), "a", 1, r); !s.Allowed {
		t.Errorf("the debt is paid: %+v", s)
	}
}

func TestTakeIsExactUnderConcurrency(t *testing.T) {
	now := time.Now()
	l := limit.New(func() time.Time { return now })
	var mu sync.Mutex
	var callers sync.WaitGroup
	allowed := 0
	for range 100 {
		callers.Go(func() {
			if s, err := l.Take(t.Context(), "a", 1, limit.Rate{PerSecond: 1, Burst: 7}); err == nil && s.Allowed {
				mu.Lock()
				allowed++
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	if allowed != 7 {
		t.Errorf("%d calls allowed, want 7", allowed)
	}
}
