package vp8_test

import (
	"context"
	"errors"
	"image"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/platform/vp8"
	"cutroom/shared/platform/vp8/vp8test"
)

type stream struct {
	*vp8.Codec
	pictures []*image.YCbCr
	frames   int
}

func newStream(t testing.TB) *stream {
	t.Helper()
	return &stream{Codec: open(t), pictures: clip(t, image.Pt(320, 180), 8)}
}

func (s *stream) next(ctx context.Context) (vp8.Frame, error) {
	picture := s.pictures[s.frames%len(s.pictures)]
	s.frames++
	return s.Encode(ctx, picture, vp8.Encoding{At: time.Duration(s.frames) * frameLength, Bitrate: 500})
}

func (s *stream) key(t testing.TB) vp8.Frame {
	t.Helper()
	frame, err := s.Encode(t.Context(), s.pictures[0],
		vp8.Encoding{At: time.Duration(s.frames) * frameLength, Bitrate: 500, Key: true})
	if s.frames++; err != nil || !frame.Key {
		t.Fatalf("a key frame: %v, %v", frame.Key, err)
	}
	return frame
}

func (s *stream) shows(t testing.TB, frame []byte) {
	t.Helper()
	var picture image.YCbCr
	if shown, err := s.Decode(t.Context(), frame, &picture); err != nil || !shown {
		t.Fatalf("a good frame: %v, %v", shown, err)
	}
}

func TestExitedHelperIsReplaced(t *testing.T) {
	s := newStream(t)
	s.shows(t, s.key(t).Data)
	between, err := s.next(t.Context())
	if err != nil || between.Key {
		t.Fatalf("a frame in between: %v, %v", between.Key, err)
	}
	var picture image.YCbCr
	kill(t, s.PID())
	if _, err := s.Decode(t.Context(), between.Data, &picture); !errors.Is(err, vp8.ErrLost) || !vp8.NeedsKeyFrame(err) {
		t.Fatalf("without its helper: %v", err)
	}
	if _, err := s.Decode(t.Context(), between.Data, &picture); !errors.Is(err, vp8.ErrKeyFrame) {
		t.Fatalf("with a new helper, before a key frame: %v", err)
	}
	replacement := s.PID()
	again, err := s.next(t.Context())
	if err != nil || !again.Key {
		t.Fatalf("the new helper's first frame is a key frame: %v, %v", again.Key, err)
	}
	s.shows(t, again.Data)
	if s.PID() != replacement {
		t.Error("the new helper was replaced too")
	}
}

func TestSessionFailsIfHelpersKeepExiting(t *testing.T) {
	s := newStream(t)
	for range 20 {
		if pid := s.PID(); pid != 0 {
			kill(t, pid)
		}
		_, err := s.next(t.Context())
		switch {
		case errors.Is(err, vp8.ErrFailed):
			return
		case err != nil && !errors.Is(err, vp8.ErrLost):
			t.Fatal(err)
		}
	}
	t.Error("helpers are started forever")
}

func TestHungHelperIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStream(t)
	l, err := vp8test.Find()
	if err != nil {
		t.Fatal(err)
	}
	brief := *l
	brief.FrameTime = 200 * time.Millisecond
	hung := &stream{Codec: openOf(t, &brief), pictures: s.pictures}
	stop(t, hung.PID())
	if _, err := hung.next(t.Context()); !errors.Is(err, vp8.ErrLost) || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a hung helper: %v", err)
	}
	s.key(t)
	stop(t, s.PID())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that ends: %v", err)
	}
	s.key(t)
}

func TestCloseEndsRunningCalls(t *testing.T) {
	s := newStream(t)
	s.key(t)
	pid := s.PID()
	stop(t, pid)
	var calling sync.WaitGroup
	calling.Go(func() {
		if _, err := s.next(t.Context()); !errors.Is(err, vp8.ErrClosed) {
			t.Errorf("a call during the close: %v", err)
		}
	})
	s.Close()
	calling.Wait()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the helper is alive: %v", err)
	}
	s.Close()
	if _, err := s.next(t.Context()); !errors.Is(err, vp8.ErrClosed) {
		t.Errorf("after the close: %v", err)
	}
}

func TestRejectedRequestsChangeNothing(t *testing.T) {
	s := newStream(t)
	good := s.key(t)
	s.shows(t, good.Data)
	first := s.PID()
	var picture image.YCbCr
	large := append([]byte(nil), good.Data...)
	copy(large[6:], []byte{0xff, 0x3f, 0xff, 0x3f}) // 16383x16383
	for what, c := range map[string]struct {
		frame []byte
		want  error
	}{
		"nothing": {nil, vp8.ErrBroken}, "a byte": {[]byte{0}, vp8.ErrBroken},
		"text":                  {[]byte("hello, this is not a video"), vp8.ErrBroken},
		"a truncated key frame": {good.Data[:12], vp8.ErrBroken}, "a large picture": {large, vp8.ErrTooLarge},
		"a large frame": {append(good.Data[:10:10], make([]byte, vp8.MaxFrame)...), vp8.ErrTooLarge},
	} {
		if _, err := s.Decode(t.Context(), c.frame, &picture); !errors.Is(err, c.want) || !vp8.NeedsKeyFrame(err) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if _, err := s.Decode(t.Context(), []byte{1, 0, 0, 0}, &picture); !errors.Is(err, vp8.ErrKeyFrame) {
			t.Errorf("%s: the frame after it: %v", what, err)
		}
		s.shows(t, good.Data)
	}
	for what, bad := range map[string]*image.YCbCr{
		"too large": image.NewYCbCr(image.Rect(0, 0, 2000, 2000), image.YCbCrSubsampleRatio420),
		"too long":  image.NewYCbCr(image.Rect(0, 0, 20000, 1), image.YCbCrSubsampleRatio420),
		"empty":     image.NewYCbCr(image.Rect(0, 0, 0, 5), image.YCbCrSubsampleRatio420),
		"4:4:4":     image.NewYCbCr(image.Rect(0, 0, 16, 16), image.YCbCrSubsampleRatio444),
	} {
		if _, err := s.Encode(t.Context(), bad, vp8.Encoding{Bitrate: 500}); err == nil {
			t.Errorf("a picture that is %s was encoded", what)
		}
	}
	if s.PID() != first {
		t.Error("the helper was replaced")
	}
}

func kill(t *testing.T, pid int) { signal(t, pid, syscall.SIGKILL) }

func stop(t *testing.T, pid int) { signal(t, pid, syscall.SIGSTOP) }

func signal(t *testing.T, pid int, number syscall.Signal) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Signal(number)
	}
	if err != nil {
		t.Fatal(err)
	}
}
