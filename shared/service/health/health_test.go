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

func TestCheck(t *testing.T) {
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
					<-hangs // ignores its context
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
		check("the answer is kept", "")
		if n := looks.Load(); n != 1 {
			t.Errorf("%d looks for a hundred checks", n)
		}
		time.Sleep(every)
		check("broken", "Files cannot be written.")
		if err := checker.Check(t.Context()); strings.Contains(err.(*fault.Error).Message, "secret") {
			t.Errorf("strangers see %v", err)
		}
		broken = nil
		time.Sleep(every)
		check("mended", "")

		hangs = make(chan struct{})
		time.Sleep(every)
		check("it has just begun to hang", "")
		check("it hangs", "does not answer")
		check("it still hangs", "does not answer")
		close(hangs)
		synctest.Wait()
		hangs = nil
		check("it goes on", "")
	})
}
