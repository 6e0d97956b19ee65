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
