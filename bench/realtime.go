package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/testkit/servertest"
)

const (
	// realtimeFrames are edited one after the other in one session.
	realtimeFrames = 400
	// realtimePrompt is a look of medium cost.
	realtimePrompt = "a watercolor painting"
	// Sessions are added until one that sends realtimeRate frames a second waits
	// longer than realtimeWait for one frame in a hundred.
	realtimeRate = 10
	realtimeWait = 200 * time.Millisecond
	realtimeTime = 4 * time.Second
	// realtimeIdle sessions are open at once and idle.
	realtimeIdle = 500
	// realtimeOpening sessions are being opened at once. A server takes 32 from one address
	// that have not begun yet, and refuses more; how many are open is another matter.
	realtimeOpening = 16
	// frameBar is how much longer a frame may take through the server than by the
	// engine.
	frameBar = 1.5
)

// realtime measures sessions: the latency of a frame, how many sessions a machine
// serves, the memory of an idle one, how fast sessions open and close, and the
// engine alone. The clients run beside the server on the same processors.
func (b *bench) realtime(ctx context.Context) error {
	tiers := filepath.Join(b.folder, "tiers.yaml")
	if err := os.WriteFile(tiers, []byte("default: {}\ndev: {}\n"), 0o600); err != nil {
		return err
	}
	server, stop, err := b.serve(ctx, "realtime", "CUTROOM_TIERS="+tiers)
	if err != nil {
		return err
	}
	defer stop()
	picture, err := exec.CommandContext(ctx, "ffmpeg", "-v", "error", "-i", b.clip,
		"-frames:v", "1", "-s", "640x360", "-q:v", "4", "-f", "mjpeg", "-").Output()
	if err != nil {
		return fmt.Errorf("take a frame of the clip: %w", err)
	}
	decoded, err := decodeJPEG(picture)
	if err != nil {
		return err
	}
	url := "ws" + strings.TrimPrefix(server.URL(), "http") + "/v1/stream?model=gen-2.5&api_key=" + servertest.Key
	stream := newDoor(url)
	for _, measure := range []func() error{
		// First, because the server's memory only grows later.
		func() error { return b.idleSessions(ctx, stream, server.PID()) },
		func() error { return b.frameLatency(ctx, stream, picture) },
		func() error { return b.sessionsAtOnce(ctx, stream, picture) },
		func() error { return b.connectRate(ctx, stream) },
		func() error { return b.looks(ctx, decoded) },
	} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// live is a session of the benchmark.
type live struct{ *websocket.Conn }

// door opens sessions at an address, realtimeOpening at a time.
type door struct {
	url string
	// opening has a place for each session that is being opened.
	opening chan struct{}
}

func newDoor(url string) *door { return &door{url, make(chan struct{}, realtimeOpening)} }

// open opens a session, and returns once it has begun.
func (d *door) open(ctx context.Context) (*live, error) {
	select {
	case d.opening <- struct{}{}:
		defer func() { <-d.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	conn, _, err := websocket.Dial(ctx, d.url, nil)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1)
	_, first, err := conn.Read(ctx)
	if err == nil && !strings.Contains(string(first), "session_started") {
		err = fmt.Errorf("no session: %s", first)
	}
	if err != nil {
		conn.CloseNow()
		return nil, err
	}
	return &live{conn}, nil
}

// prompt sets the benchmark's prompt.
func (l *live) prompt(ctx context.Context) error {
	if err := l.Write(ctx, websocket.MessageText, []byte(`{"type":"prompt","prompt":"`+realtimePrompt+`"}`)); err != nil {
		return err
	}
	for {
		_, message, err := l.Read(ctx)
		if err != nil || strings.Contains(string(message), "prompt_ack") {
			return err
		}
	}
}

// edit sends a frame and waits for the edited one.
func (l *live) edit(ctx context.Context, picture []byte) (time.Duration, error) {
	begun := time.Now()
	if err := l.Write(ctx, websocket.MessageBinary, picture); err != nil {
		return 0, err
	}
	for {
		kind, message, err := l.Read(ctx)
		switch {
		case err != nil:
			return 0, err
		case kind == websocket.MessageBinary:
			return time.Since(begun), nil
		case strings.Contains(string(message), `"error"`):
			return 0, errors.New(string(message))
		}
	}
}

// frameLatency has one session's frames edited, one after the other. The floor is
// the engine alone.
func (b *bench) frameLatency(ctx context.Context, stream *door, picture []byte) error {
	known, err := catalog.Default("gen")
	if err != nil {
		return err
	}
	m, _ := known.Find("gen-2.5")
	editor, err := frame.New(time.Now, rand.Uint32).Open(ctx, m)
	if err != nil {
		return err
	}
	defer editor.Close()
	if _, err := editor.SetPrompt(ctx, realtimePrompt); err != nil {
		return err
	}
	session, err := stream.open(ctx)
	if err != nil {
		return err
	}
	defer session.CloseNow()
	if err := session.prompt(ctx); err != nil {
		return err
	}
	var served, alone []time.Duration
	for range realtimeFrames {
		took, err := session.edit(ctx, picture)
		if err != nil {
			return err
		}
		begun := time.Now()
		if err := editJPEG(ctx, editor, picture); err != nil {
			return err
		}
		served, alone = append(served, took), append(alone, time.Since(begun))
	}
	within := median(served).Seconds() <= frameBar*median(alone).Seconds()
	b.table.add(row{
		what: "frame of 640x360 in one session, p50", measured: short(median(served)),
		floor: short(median(alone)) + " engine alone",
		ratio: ratio(median(served), median(alone)), bar: fmt.Sprintf("%.1f x", frameBar), verdict: verdictOf(within),
	})
	last, lastAlone := quantile(served, 0.99), quantile(alone, 0.99)
	b.table.add(row{
		what: "  p99", measured: short(last), floor: short(lastAlone) + " engine alone", ratio: ratio(last, lastAlone),
		bar: "-", verdict: noBar,
	})
	return nil
}

// editJPEG edits a frame as the WebSocket transport does: a JPEG that becomes a JPEG.
func editJPEG(ctx context.Context, editor engine.LiveEditor, frame []byte) error {
	picture, err := decodeJPEG(frame)
	if err != nil {
		return err
	}
	edited, err := editor.Edit(ctx, picture)
	if err != nil {
		return err
	}
	return jpeg.Encode(io.Discard, &edited.YCbCr, &jpeg.Options{Quality: 82})
}

// decodeJPEG returns the picture of a JPEG of video.
func decodeJPEG(frame []byte) (*engine.Picture, error) {
	decoded, err := jpeg.Decode(bytes.NewReader(frame))
	if err != nil {
		return nil, err
	}
	return &engine.Picture{YCbCr: *decoded.(*image.YCbCr)}, nil
}

// sessionsAtOnce doubles the number of sessions until their frames are too late.
func (b *bench) sessionsAtOnce(ctx context.Context, stream *door, picture []byte) error {
	best, wait := 0, time.Duration(0)
	var middle, last time.Duration
	for sessions := 1; sessions <= 64; sessions *= 2 {
		took, err := paced(ctx, stream, picture, sessions)
		if err != nil {
			return err
		}
		if wait = quantile(took, 0.99); wait > realtimeWait {
			break
		}
		best, middle, last = sessions, median(took), wait
	}
	b.table.add(row{
		what:     fmt.Sprintf("sessions of %d frames/s with p99 within %s", realtimeRate, short(realtimeWait)),
		measured: fmt.Sprintf("%d (p50 %s, p99 %s)", best, short(middle), short(last)), floor: "-",
		ratio: fmt.Sprintf("p99 %s with twice as many", short(wait)), bar: "-", verdict: noBar,
	})
	return nil
}

// paced opens sessions that send frames at the rate, and returns what each took. A
// session whose frame is not back in time sends the next one late.
func paced(ctx context.Context, stream *door, picture []byte, sessions int) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	group, ctx := errgroup.WithContext(ctx)
	for range sessions {
		group.Go(func() error {
			session, err := stream.open(ctx)
			if err != nil {
				return err
			}
			defer session.CloseNow()
			if err := session.prompt(ctx); err != nil {
				return err
			}
			time.Sleep(rand.N(time.Second / realtimeRate)) // not all at the same moment
			ticker := time.NewTicker(time.Second / realtimeRate)
			defer ticker.Stop()
			for end := time.Now().Add(realtimeTime); time.Now().Before(end); <-ticker.C {
				took, err := session.edit(ctx, picture)
				if err != nil {
					return err
				}
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
			return nil
		})
	}
	return all, group.Wait()
}

// idleSessions opens many idle sessions.
func (b *bench) idleSessions(ctx context.Context, stream *door, pid int) error {
	before, err := memory(pid, "VmRSS")
	if err != nil {
		return err
	}
	var open []*live
	defer func() {
		for _, session := range open {
			session.CloseNow()
		}
	}()
	for range realtimeIdle {
		session, err := stream.open(ctx)
		if err != nil {
			return err
		}
		open = append(open, session)
	}
	after, err := memory(pid, "VmRSS")
	if err != nil {
		return err
	}
	b.table.add(row{
		what:     fmt.Sprintf("memory of an idle session, of %d", realtimeIdle),
		measured: fmt.Sprintf("%d KiB", (after-before)/realtimeIdle>>10),
		floor:    mebibytes(before) + " before", ratio: "-", bar: "-", verdict: noBar,
	})
	return nil
}

// connectRate opens and closes sessions. The floor is the WebSocket library without
// the service.
func (b *bench) connectRate(ctx context.Context, stream *door) error {
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		if conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"session_started"}`)) == nil {
			_, _, _ = conn.Read(r.Context()) // until the client closes
		}
	}))
	defer bare.Close()
	visit := func(at *door) func(context.Context) error {
		return func(ctx context.Context) error {
			session, err := at.open(ctx)
			if err != nil {
				return err
			}
			return session.Close(websocket.StatusNormalClosure, "")
		}
	}
	floor, err := perSecond(ctx, visit(newDoor("ws"+strings.TrimPrefix(bare.URL, "http"))))
	if err != nil {
		return err
	}
	rate, err := perSecond(ctx, visit(stream))
	if err != nil {
		return err
	}
	b.table.add(row{
		what: "sessions opened and closed a second", measured: fmt.Sprintf("%.0f/s", rate),
		floor: fmt.Sprintf("%.0f/s bare WebSocket", floor), ratio: fmt.Sprintf("%.2f x", rate/floor), bar: "-",
		verdict: noBar,
	})
	return nil
}
