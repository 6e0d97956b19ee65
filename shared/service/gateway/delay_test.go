package gateway

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlowCallersYieldUntilTheyCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var yielded, kept atomic.Int64
		d := &delay{yield: func() { yielded.Add(1) }, keep: func() { kept.Add(1) }}
		send := func(took time.Duration) {
			d.begin()
			time.Sleep(took)
			d.end()
		}
		for range 1000 { // a phone that stalls for a second now and then
			send(10 * time.Millisecond)
			time.Sleep(4 * time.Second)
			send(time.Second)
		}
		if yielded.Load() > 0 {
			t.Error("a caller with short delays yields")
		}
		d.begin()
		time.Sleep(maxBlocked)
		synctest.Wait()
		if yielded.Load() != 1 {
			t.Errorf("during a long send: yielded %d times", yielded.Load())
		}
		d.end()
		for range 20 {
			send(time.Millisecond)
			time.Sleep(time.Second)
		}
		if kept.Load() != 1 {
			t.Errorf("a caller that has caught up keeps its slot %d times", kept.Load())
		}
	})
}

// An account whose streams mostly stall is recognized. One with few such streams is not.
func TestUsualStallsAreRecognized(t *testing.T) {
	var s stalls
	for range 10 {
		s.add("stalls", 4800*time.Millisecond, 5*time.Second)
		s.add("office", 4800*time.Millisecond, 5*time.Second) // one slow phone
		s.add("office", 0, 10*time.Second)
	}
	s.add("new", 17*time.Minute, 17*time.Minute)
	for account, want := range map[string]bool{"stalls": true, "office": false, "new": false, "unknown": false} {
		if got := s.usual(account); got != want {
			t.Errorf("%s: %v", account, got)
		}
	}
	for range 20 {
		s.add("stalls", 0, 10*time.Second)
	}
	if s.usual("stalls") {
		t.Error("an account that reads well again is not forgiven")
	}
	d := &delay{blocked: maxBlocked, yield: func() {}, keep: func() { t.Error("a slow caller keeps its slot") }}
	d.begin()
	d.end()
	if !d.yields {
		t.Error("a stream of an account that stalls does not yield from its first send on")
	}
}
