package patience

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test that fails: it keeps the message.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A wait ends after two minutes, and the message has the last state.
func TestWaitsEndWithTheLastState(t *testing.T) {
	for want, wait := range map[string]func(t testing.TB){
		"the server's end: not within 2m0s": func(t testing.TB) {
			Until(t, "the server's end", func() bool { return false })
		},
		"jobs: 3: not within 2m0s; last seen: 2": func(t testing.TB) {
			Becomes(t, "jobs", 3, func() int { return 2 })
		},
		"an answer: not within 2m0s; last seen: the log": func(t testing.TB) {
			Receive(t, "an answer", make(chan int), func() any { return "the log" })
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, began := &failing{TB: t}, time.Now()
			go wait(f)
			time.Sleep(Max + time.Second)
			synctest.Wait()
			if f.said != want || time.Since(began) > 2*Max {
				t.Errorf("it says %q, want %q", f.said, want)
			}
		})
	}
}
