package panics_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"cutroom/shared/platform/panics"
)

func outOfRange(picture []byte) byte { return picture[len(picture)] }

func TestErrorReturnsPanic(t *testing.T) {
	work := func() (err error) {
		defer panics.Error(&err)
		outOfRange([]byte{1})
		return nil
	}
	var p *panics.Panic
	if err := work(); !errors.As(err, &p) || !strings.Contains(err.Error(), "index out of range") ||
		!strings.Contains(p.Stack, "outOfRange") {
		t.Errorf("got %v", err)
	}
	whole := func() (err error) {
		defer panics.Error(&err)
		return errors.New("an error")
	}
	if err := whole(); err == nil || err.Error() != "an error" {
		t.Errorf("got %v", err)
	}
}

func TestRunLogsPanic(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if panics.Run(logger, "reading", func() { outOfRange(nil) }) {
		t.Error("a panic was reported as a return")
	}
	for _, want := range []string{"in=reading", "index out of range", "outOfRange"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
	log.Reset()
	if !panics.Run(logger, "reading", func() {}) || log.Len() > 0 {
		t.Errorf("a return was reported as a panic: %s", &log)
	}
}

func TestGroupPassesOnPanic(t *testing.T) {
	var ended atomic.Int32
	work := func() (err error) {
		defer panics.Error(&err)
		var parts panics.Group
		for i := range 8 {
			parts.Go(func() {
				if i == 3 {
					outOfRange(nil)
				}
				ended.Add(1)
			})
		}
		parts.Wait()
		return nil
	}
	var p *panics.Panic
	if err := work(); !errors.As(err, &p) || !strings.Contains(p.Stack, "outOfRange") {
		t.Errorf("got %v", err)
	}
	if ended.Load() != 7 {
		t.Errorf("%d of 7 goroutines ended", ended.Load())
	}
}
