package worker_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/clock"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/programtest"
)

func picture(t *testing.T, width int) []byte {
	t.Helper()
	var encoded bytes.Buffer
	if err := jpeg.Encode(&encoded, image.NewGray(image.Rect(0, 0, width, 8)), nil); err != nil {
		t.Fatal(err)
	}
	return encoded.Bytes()
}

func (s *fixture) preview(j job.Job) []byte {
	s.t.Helper()
	content, _ := s.read(j.PreviewBlob())
	return content
}

func previewing(every time.Duration) func(*worker.Config) {
	return func(c *worker.Config) { c.PreviewEvery = every }
}

// The preview is deleted after the run, whether or not it succeeded.
func TestLatestPreviewIsAvailable(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		s := newFixture(t)
		first, second := picture(t, 16), picture(t, 24)
		shown, checked := make(chan []byte), make(chan struct{})
		id := s.submit("a clip", 0)
		stop := s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
			for p := range shown {
				progress(engine.Progress{Fraction: 0.5, Preview: p})
			}
			<-checked
			if spec.PreviewEvery != time.Millisecond {
				t.Errorf("the engine must send one every %v", spec.PreviewEvery)
			}
			if fails {
				return engine.InvalidInput(nil, "No.")
			}
			return os.WriteFile(spec.Output, []byte("edited"), 0o600)
		}, previewing(time.Millisecond))
		var j job.Job
		for _, p := range [][]byte{first, nil, second} {
			shown <- p
			if p != nil {
				j = s.await(id, "running", func(j job.Job) bool { return j.Status == job.Processing })
				await.Until(t, "the preview exists", func() bool { return bytes.Equal(s.preview(j), p) })
			}
		}
		close(shown)
		close(checked)
		s.awaitEnd(id)
		await.Until(t, "the preview is deleted", func() bool { return s.preview(j) == nil })
		s.wantClean(stop)
	}
}

type notes struct{ said chan string }

func (n *notes) Write(line []byte) (int, error) {
	select {
	case n.said <- string(line):
	default:
	}
	return len(line), nil
}

func TestInvalidPreviewIsIgnored(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string][]byte{
		"no JPEG": []byte("<script>"), "a JPEG too wide": picture(t, engine.PreviewSide+1),
		"too many bytes": append(picture(t, 8), make([]byte, engine.MaxPreview)...),
	} {
		s := newFixture(t)
		id := s.submit("a clip", 0)
		var none bool
		lines := &notes{said: make(chan string, 100)}
		stop := s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
			progress(engine.Progress{Fraction: 0.5, Preview: sent})
			for line := range lines.said {
				if strings.Contains(line, "sent an invalid preview") {
					break
				}
			}
			j, err := s.jobs.Get(ctx, spec.Job)
			none = err == nil && s.preview(j) == nil
			return os.WriteFile(spec.Output, []byte("edited"), 0o600)
		}, previewing(time.Millisecond), func(c *worker.Config) { c.Logger = slog.New(slog.NewTextHandler(lines, nil)) })
		if j := s.awaitEnd(id); j.Status != job.Completed || !none {
			t.Errorf("%s: the job is %s, without a preview: %t", name, j.Status, none)
		}
		s.wantClean(stop)
	}
}

// roomless is a blob store without space for previews. It counts rejected previews.
type roomless struct {
	blob.Store
	refused *atomic.Int64
}

func (f roomless) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	if strings.Contains(name, "/preview-") {
		f.refused.Add(1)
		return 0, errors.New("there is no space left")
	}
	return f.Store.Put(ctx, name, r)
}

// A full disk affects only the previews.
func TestFullDiskIsLoggedOnce(t *testing.T) {
	t.Parallel()
	s, store, log := newFixture(t), roomless{refused: new(atomic.Int64)}, &programtest.Output{}
	store.Store = s.blobs
	id := s.submit("a clip", 0)
	stop := s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		shown := picture(t, 16)
		for store.refused.Load() < 3 && clock.Wait(ctx, time.Millisecond) {
			progress(engine.Progress{Fraction: 0.5, Preview: shown})
		}
		return os.WriteFile(spec.Output, []byte("edited"), 0o600)
	}, previewing(time.Millisecond), func(c *worker.Config) {
		c.Blobs, c.Logger = store, slog.New(slog.NewTextHandler(log, nil))
	})
	if j := s.awaitEnd(id); j.Status != job.Completed {
		t.Errorf("the job ended as %s", j.Status)
	}
	s.wantClean(stop)
	if logged := strings.Count(log.String(), "store a preview"); logged != 1 {
		t.Errorf("logged %d times:\n%s", logged, log)
	}
}
