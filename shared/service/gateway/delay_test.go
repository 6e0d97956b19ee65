package gateway

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSlowCallersYieldUntilTheyCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yielded, kept := 0, 0
		d := &delay{yield: func() { yielded++ }, keep: func() { kept++ }}
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
		if yielded > 0 {
			t.Error("a caller with short delays yields")
		}
		d.begin()
		time.Sleep(maxBlocked)
		synctest.Wait()
		if yielded != 1 {
			t.Errorf("during a long send: yielded %d times", yielded)
		}
		d.end()
		for range 20 {
			send(time.Millisecond)
			time.Sleep(time.Second)
		}
		if kept != 1 {
			t.Errorf("a caller that has caught up keeps its slot %d times", kept)
		}
	})
}
