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
	r := limit.Rate{PerSecond: 2, Burst: 3}
	for i := range 3 {
		if s := l.Take("a", r); !s.Allowed || s.Remaining != 2-i {
			t.Errorf("call %d: %+v", i+1, s)
		}
	}
	s := l.Take("a", r)
	if s.Allowed || s.Remaining != 0 || s.RetryAfter != 500*time.Millisecond || s.Reset != 1500*time.Millisecond {
		t.Errorf("over the burst: %+v", s)
	}
	if s := l.Take("b", r); !s.Allowed {
		t.Error("another account is limited too")
	}
	if s := l.Take("a", limit.Rate{}); !s.Allowed {
		t.Error("no limit limits")
	}
	now = now.Add(500 * time.Millisecond)
	if s := l.Take("a", r); !s.Allowed {
		t.Errorf("after RetryAfter: %+v", s)
	}
	now = now.Add(time.Hour) // everyone is forgotten, and nobody loses by it
	if s := l.Take("a", r); !s.Allowed || s.Remaining != 2 {
		t.Errorf("after an hour: %+v", s)
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
			if l.Take("a", limit.Rate{PerSecond: 1, Burst: 7}).Allowed {
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
