package batches

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// If no calls are accepted, the batch pauses.
func TestPaceFollowsRejections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(4)
		for range 4 {
			if !p.begin(t.Context()) {
				t.Fatal("four calls may be made")
			}
		}
		p.refused(time.Hour)
		p.refused(time.Hour)
		started := time.Now()
		went := make(chan bool)
		go func() { went <- p.begin(t.Context()) }()
		synctest.Wait()
		select {
		case <-went:
			t.Error("a third call was made although two are accepted")
		default:
		}
		p.took()
		if !<-went || time.Now() != started {
			t.Error("the next call starts after one has ended")
		}
		p.took()
		p.refused(time.Hour) // no other call is in flight
		if !p.begin(t.Context()) || time.Since(started) != mostPause {
			t.Errorf("waited %s", time.Since(started))
		}
		for range 20 {
			p.took()
			p.begin(t.Context())
		}
		if p.current != 4 {
			t.Errorf("%d calls at once", p.current)
		}
		cutAt := time.Now()
		if p.cut(); !p.begin(t.Context()) || time.Since(cutAt) != leastPause || p.current != 4 {
			t.Errorf("after a cut, %d calls at once after %v", p.current, time.Since(cutAt))
		}
		p.end()
		ended, end := context.WithCancel(t.Context())
		end()
		if p.begin(ended) {
			t.Error("a call started after the end")
		}
	})
}
