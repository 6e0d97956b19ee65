package batches

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A batch finds out how many calls at once are accepted, and waits when none is.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(4)
		for range 4 {
			if !p.begin(t.Context()) {
				t.Fatal("four may be made")
			}
		}
		p.refused(time.Hour)
		p.refused(time.Hour)
		begun := time.Now()
		went := make(chan bool)
		go func() { went <- p.begin(t.Context()) }()
		synctest.Wait()
		select {
		case <-went:
			t.Error("a third call was made where two are taken")
		default:
		}
		p.took()
		if !<-went || time.Now() != begun {
			t.Error("it continues when one has ended")
		}
		p.took()
		p.refused(time.Hour) // no call is running now
		if !p.begin(t.Context()) || time.Since(begun) != mostPause {
			t.Errorf("it waited %s", time.Since(begun))
		}
		for range 20 {
			p.took()
			p.begin(t.Context())
		}
		if p.current != 4 {
			t.Errorf("%d calls at once", p.current)
		}
		p.end()
		ended, end := context.WithCancel(t.Context())
		end()
		if p.begin(ended) {
			t.Error("it continued after the end")
		}
	})
}
