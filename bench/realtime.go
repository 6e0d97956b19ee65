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
	"os/exec"
	"strings"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/testkit/servertest"
)

const (
	// realtimeFrames is the number of frames edited in sequence in one session.
	realtimeFrames = 400
	// realtimePrompt requests a look that takes a medium time to render.
	realtimePrompt = "a watercolor painting"
	// frameBar is the maximum time for a frame through the server, as a multiple of the engine's time.
	frameBar = 1.5
)

// realtime measures the latency of a frame, once in a session and once with only the engine. The client runs on the
// same CPUs as the server.
func (b *bench) realtime(ctx context.Context) error {
	server, stop, err := b.serve(ctx, "realtime")
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
	if err := b.frameLatency(ctx, url, picture); err != nil {
		return err
	}
	return b.looks(ctx, decoded)
}

type live struct{ *websocket.Conn }

// openLive opens a session and waits until it starts.
func openLive(ctx context.Context, url string) (*live, error) {
	conn, _, err := websocket.Dial(ctx, url, nil)
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

// frameLatency edits one session's frames in sequence. The floor edits the same frames with the engine, without the
// service.
func (b *bench) frameLatency(ctx context.Context, url string, picture []byte) error {
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
	session, err := openLive(ctx, url)
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

// editJPEG edits a frame as the WebSocket transport does, from JPEG to JPEG.
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

func decodeJPEG(frame []byte) (*engine.Picture, error) {
	decoded, err := jpeg.Decode(bytes.NewReader(frame))
	if err != nil {
		return nil, err
	}
	return &engine.Picture{YCbCr: *decoded.(*image.YCbCr)}, nil
}
