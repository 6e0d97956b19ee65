package health

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cutroom/shared/domain/fault"
)

func TestProbesAreCachedAndTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			looks  atomic.Int64
			broken error
			hangs  chan struct{}
		)
		checker := New(slog.New(slog.DiscardHandler), Probe{"disk", "Files cannot be written.",
			func(ctx context.Context) error {
				looks.Add(1)
				if hangs != nil {
					<-hangs // ignores the context
				}
				return broken
			}})
		check := func(when, want string) {
			t.Helper()
			err := checker.Check(t.Context())
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %v", when, err)
			case want != "" && (!fault.Is(err, fault.Unavailable) || !strings.Contains(err.(*fault.Error).Message, want)):
				t.Errorf("%s: %v, want %q", when, err, want)
			}
		}
		for range 100 {
			check("well", "")
		}
		broken = errors.New("/secret/path: read-only file system")
		check("the result is cached", "")
		if n := looks.Load(); n != 1 {
			t.Errorf("%d probes for a hundred checks, want 1", n)
		}
		time.Sleep(every)
		check("broken", "Files cannot be written.")
		if err := checker.Check(t.Context()); strings.Contains(err.(*fault.Error).Message, "secret") {
			t.Errorf("clients see %v", err)
		}
		broken = nil
		time.Sleep(every)
		check("repaired", "")

		hangs = make(chan struct{})
		time.Sleep(every)
		check("the probe has just started to hang", "")
		check("the probe hangs", "does not respond")
		check("the probe still hangs", "does not respond")
		close(hangs)
		synctest.Wait()
		hangs = nil
		check("it continues", "")
	})
}
