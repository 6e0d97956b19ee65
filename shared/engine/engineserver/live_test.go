package engineserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver"
	"cutroom/shared/engine/engineserver/engineservertest"
	"cutroom/shared/engine/engineserver/livewire"
	"cutroom/shared/engine/enginetest"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/busytest"
)

var liveModel = &catalog.Model{ID: "gen-2.5", Kind: catalog.Edit}

func previewFrames() engine.LiveEngine { return frame.New(time.Now, func() uint32 { return 7 }) }

func serveLive(t *testing.T, handler http.Handler) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(livewire.Path, handler)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func newLive(t *testing.T, within time.Duration, urls ...string) *engineserver.Live {
	t.Helper()
	c := engineserver.LiveConfig{Seed: func() uint32 { return 7 }, Frame: within}
	for _, url := range urls {
		c.Servers = append(c.Servers, engineserver.Config{URL: url})
	}
	l, err := engineserver.NewLive(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func openLive(t *testing.T, l *engineserver.Live) engine.LiveEditor {
	t.Helper()
	editor, err := l.Open(t.Context(), liveModel)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(editor.Close)
	return editor
}

func grey(size image.Point) *engine.Picture {
	picture := &engine.Picture{YCbCr: *image.NewYCbCr(image.Rectangle{Max: size}, image.YCbCrSubsampleRatio420)}
	for i := range picture.Y {
		picture.Y[i] = 90
	}
	return picture
}

func TestLiveEngineConforms(t *testing.T) {
	url := serveLive(t, &engineservertest.Live{Engine: previewFrames(), Models: []*catalog.Model{liveModel}})
	enginetest.RunLive(t, enginetest.LiveHarness{
		Engine: newLive(t, await.Max, url), Model: liveModel, Prompt: "cyberpunk neon", Large: image.Pt(4000, 3000),
	})
}

func TestLiveServerIsChosenByModelAndCapacity(t *testing.T) {
	here := []*catalog.Model{liveModel}
	serves := &engineservertest.Live{Engine: previewFrames(), Models: here, Most: 1}
	second := &engineservertest.Live{Engine: previewFrames(), Models: here, Most: 1}
	other := &engineservertest.Live{Engine: previewFrames(), Models: []*catalog.Model{{ID: "gen-2.1"}}}
	one, two, three := serveLive(t, serves), serveLive(t, second), serveLive(t, other)
	old := serveLive(t, http.NotFoundHandler())
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	for name, c := range map[string]struct {
		urls []string
		want func(error) bool
	}{
		"no server has the model": {
			[]string{old, three}, func(err error) bool { return errors.Is(err, engineserver.ErrNotLive) },
		},
		"one server does not respond": {
			[]string{old, gone.URL}, func(err error) bool { return fault.Is(err, fault.Unavailable) },
		},
		"one server has it, but responds late": {[]string{gone.URL, old, one}, func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			editor, err := newLive(t, await.Max, c.urls...).Open(t.Context(), liveModel)
			if !c.want(err) {
				t.Errorf("got %v", err)
			}
			if err == nil {
				editor.Close()
			}
		})
	}
	await.Becomes(t, "open sessions", 0, serves.Open)
	l := newLive(t, await.Max, one, two)
	first := openLive(t, l)
	openLive(t, l)
	if serves.Open() != 1 || second.Open() != 1 {
		t.Errorf("the servers have %d and %d sessions, want one each", serves.Open(), second.Open())
	}
	if _, err := l.Open(t.Context(), liveModel); !fault.Is(err, fault.Unavailable) {
		t.Errorf("when all are full: %v", err)
	}
	first.Close()
	await.Until(t, "after a session has ended", func() bool {
		editor, err := l.Open(t.Context(), liveModel)
		if err == nil {
			editor.Close()
		}
		return err == nil
	})
}

// liveScript starts a ready server that calls the function on for each message, until the function returns false.
func liveScript(
	t *testing.T, ready string, on func(number int, kind livewire.Kind, payload []byte, w io.Writer) bool,
) string {
	t.Helper()
	return serveLive(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(livewire.Catalogue{
				Version: livewire.Version, Models: map[string]livewire.Model{liveModel.ID: {Ready: true}},
			})
			return
		}
		flush := http.NewResponseController(w)
		_ = flush.EnableFullDuplex()
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, ready)
		_ = flush.Flush()
		from := livewire.NewReader(r.Body)
		for number := 0; ; number++ {
			kind, payload, err := from.Next(nil)
			if err != nil || !on(number, kind, payload, w) {
				return
			}
			_ = flush.Flush()
		}
	}))
}

func crash(w io.Writer) bool {
	if connection, _, err := http.NewResponseController(w.(http.ResponseWriter)).Hijack(); err == nil {
		connection.Close()
	}
	return false
}

func text(content string) string {
	return "\x01\x00\x00\x00\x00\x00" + string([]byte{byte(len(content) >> 8), byte(len(content))}) + content
}

var readyText = text(`{"ready":{"engine":"scripted"}}`)

func setAny(kind livewire.Kind, payload []byte, w io.Writer) {
	var wish livewire.Wish
	if kind == livewire.Image {
		wish.Number, _, _ = engineservertest.ParseImage(payload)
	} else {
		_ = json.Unmarshal(payload, &wish)
	}
	message, _ := livewire.AppendText(nil, livewire.Line{Set: &livewire.Set{Number: wish.Number}})
	_, _ = w.Write(message)
}

func TestFaultyLiveServersAreSkipped(t *testing.T) {
	for name, first := range map[string]string{
		"nothing":                 "",
		"an unknown kind":         "\x09\x00\x00\x00\x00\x00\x00\x01x",
		"a text that is too long": "\x01\x00\x00\x00\xff\xff\xff\xff",
		"a picture":               "\x02\x00\x00\x00\x00\x00\x00\x00",
		"no JSON":                 text("ready"),
		"another line":            text(`{"set":{"number":1}}`),
		"a truncated message":     readyText[:12],
	} {
		t.Run(name, func(t *testing.T) {
			url := serveLive(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_, _ = io.WriteString(w, `{"version":1,"models":{"gen-2.5":{"ready":true}}}`)
					return
				}
				_ = http.NewResponseController(w).EnableFullDuplex()
				w.Header().Set("Connection", "close")
				_, _ = io.WriteString(w, first)
			}))
			if _, err := newLive(t, await.Max, url).Open(t.Context(), liveModel); !fault.Is(err, fault.Unavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWrongLiveResponsesFailTheEdit(t *testing.T) {
	answer := func(edit func(picture *engine.Picture, number uint32) []byte) func([]byte, io.Writer) bool {
		return func(payload []byte, w io.Writer) bool {
			number, picture, err := livewire.ParsePicture(payload)
			if err != nil {
				return false
			}
			_, _ = w.Write(edit(picture, number))
			return true
		}
	}
	for name, c := range map[string]struct {
		on   func(payload []byte, w io.Writer) bool
		code fault.Code
	}{
		"a picture that is larger than its header": {answer(func(p *engine.Picture, n uint32) []byte {
			m := livewire.AppendPicture(nil, n, p)
			m[13] = 200 // a byte of the width
			return m
		}), fault.EngineFailed},
		"a picture without a size": {answer(func(_ *engine.Picture, n uint32) []byte {
			return append([]byte{2, 0, 0, 0, 0, 0, 0, 12}, make([]byte, 12)...)
		}), fault.EngineFailed},
		"a picture that is too large": {answer(func(_ *engine.Picture, n uint32) []byte {
			return []byte{2, 0, 0, 0, 0x7f, 0, 0, 0}
		}), fault.EngineFailed},
		"another range": {answer(func(p *engine.Picture, n uint32) []byte {
			p.Narrow = !p.Narrow
			return livewire.AppendPicture(nil, n, p)
		}), fault.EngineFailed},
		"nothing": {func([]byte, io.Writer) bool { return true }, fault.EngineFailed},
		"an older picture": {answer(func(p *engine.Picture, n uint32) []byte {
			return livewire.AppendPicture(nil, n-1, p)
		}), fault.EngineFailed},
		"a refusal": {answer(func(_ *engine.Picture, n uint32) []byte {
			m, _ := livewire.AppendText(nil, livewire.Line{Refused: &livewire.Refused{
				Number: n, Error: livewire.Failure{Code: "invalid_input", Message: "It is too\n dark."}}})
			return m
		}), fault.Invalid},
		"the end": {answer(func(*engine.Picture, uint32) []byte {
			return []byte(text(`{"error":{"code":"engine_error","message":"It failed."}}`))
		}), fault.EngineFailed},
		"a crash": {func(_ []byte, w io.Writer) bool { return crash(w) }, fault.EngineFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := liveScript(t, readyText, func(number int, kind livewire.Kind, payload []byte, w io.Writer) bool {
				switch {
				case number == 0: // the start message
				case kind == livewire.Picture:
					return c.on(payload, w)
				default:
					setAny(kind, payload, w)
				}
				return true
			})
			busytest.Try(t, 2*time.Second, func(silence time.Duration) error {
				editor, err := newLive(t, silence, url).Open(t.Context(), liveModel)
				if err != nil {
					return err
				}
				defer editor.Close()
				if reported, err := editor.SetPrompt(t.Context(), "winter"); err != nil || reported.Engine != "scripted" {
					return fmt.Errorf("the prompt: %+v, %v", reported, err)
				}
				if _, err := editor.Edit(t.Context(), grey(image.Pt(64, 48))); !fault.Is(err, c.code) {
					return fmt.Errorf("got %v, want %s", err, c.code)
				}
				return nil
			})
		})
	}
}

// The server crashes between two frames or during a frame. The session keeps its prompt and its image.
func TestLiveSessionSurvivesServerRestart(t *testing.T) {
	var sessions, crashes atomic.Int64
	crashes.Store(2)
	asked := make(chan string, 100)
	url := liveScript(t, readyText, func(number int, kind livewire.Kind, payload []byte, w io.Writer) bool {
		switch {
		case number == 0:
			sessions.Add(1)
		case kind == livewire.Picture:
			if sessions.Load() == 1 || crashes.Add(-1) == 0 {
				return crash(w)
			}
			_, picture, _ := livewire.ParsePicture(payload)
			n, _, _ := livewire.ParsePicture(payload)
			_, _ = w.Write(livewire.AppendPicture(nil, n, picture))
		default:
			setAny(kind, payload, w)
			asked <- string(payload)
		}
		return true
	})
	editor := openLive(t, newLive(t, await.Max, url))
	if _, err := editor.SetPrompt(t.Context(), "winter"); err != nil {
		t.Fatal(err)
	}
	dot := &engine.ReferenceImage{Size: catalog.Size{Width: 1, Height: 1}, Pixels: []byte{1, 2, 3, 255}}
	if _, err := editor.SetImage(t.Context(), dot); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		edited, err := editor.Edit(t.Context(), grey(image.Pt(64, 48)))
		if err != nil {
			t.Fatal(err)
		}
		if edited.Rect.Size() != image.Pt(64, 48) || edited.Y[0] != 90 {
			t.Errorf("edited %v", edited.Rect)
		}
	}
	if n := sessions.Load(); n < 2 {
		t.Errorf("there were %d sessions", n)
	}
	if n := len(asked); n != int(2*sessions.Load()) {
		t.Errorf("%d changes were sent in %d sessions", n, sessions.Load())
	}
}

// The late response is dropped, and the next frame gets its own response.
func TestAbandonedLivePictureIsDropped(t *testing.T) {
	release := make(chan struct{})
	url := liveScript(t, readyText, func(number int, kind livewire.Kind, payload []byte, w io.Writer) bool {
		if number > 0 && kind == livewire.Picture {
			n, picture, err := livewire.ParsePicture(payload)
			if err != nil {
				return false
			}
			if picture.Y[0] == 90 {
				<-release
			}
			_, _ = w.Write(livewire.AppendPicture(nil, n, picture))
		} else if number > 0 {
			setAny(kind, payload, w)
		}
		return true
	})
	editor := openLive(t, newLive(t, await.Max, url))
	if _, err := editor.SetPrompt(t.Context(), "winter"); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithTimeout(t.Context(), shortSilence)
	defer leave()
	if _, err := editor.Edit(ctx, grey(image.Pt(1280, 720))); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("abandoned: %v", err)
	}
	close(release)
	next := grey(image.Pt(64, 48))
	next.Y[0] = 33
	edited, err := editor.Edit(t.Context(), next)
	if err != nil || edited.Rect != next.Rect || edited.Y[0] != 33 {
		t.Errorf("the next picture: %v, %v", edited, err)
	}
}

func TestLiveSessionsLeakNothing(t *testing.T) {
	server := &engineservertest.Live{Engine: previewFrames(), Models: []*catalog.Model{liveModel}}
	l := newLive(t, await.Max, serveLive(t, server))
	picture := grey(image.Pt(640, 360))
	edits := func(n int) {
		editor, err := l.Open(t.Context(), liveModel)
		if err != nil {
			t.Fatal(err)
		}
		defer editor.Close()
		if _, err := editor.SetPrompt(t.Context(), "film noir"); err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := editor.Edit(t.Context(), picture); err != nil {
				t.Fatal(err)
			}
		}
	}
	edits(2)
	before := runtime.NumGoroutine()
	for range 5 {
		edits(2)
	}
	await.Becomes(t, "open sessions", 0, server.Open)
	await.Value(t, "all goroutines end", runtime.NumGoroutine, func(now int) bool { return now <= before })
}

func TestRejectedLiveImageChangesNothing(t *testing.T) {
	url := liveScript(t, readyText, func(number int, kind livewire.Kind, payload []byte, w io.Writer) bool {
		switch {
		case number == 0:
		case kind == livewire.Image:
			n, _, _ := engineservertest.ParseImage(payload)
			m, _ := livewire.AppendText(nil, livewire.Line{Set: &livewire.Set{
				Number: n, Error: &livewire.Failure{Code: "invalid_input", Message: "The engine takes no image here."}}})
			_, _ = w.Write(m)
		default:
			setAny(kind, payload, w)
		}
		return true
	})
	editor := openLive(t, newLive(t, await.Max, url))
	dot := &engine.ReferenceImage{Size: catalog.Size{Width: 1, Height: 1}, Pixels: []byte{1, 2, 3, 255}}
	if _, err := editor.SetImage(t.Context(), dot); !fault.Is(err, fault.Invalid) ||
		err.Error() != "The engine takes no image here." {
		t.Errorf("got %v", err)
	}
	picture := grey(image.Pt(64, 48))
	if edited, err := editor.Edit(t.Context(), picture); err != nil || edited != picture {
		t.Errorf("the next picture: %v", err)
	}
	huge := &engine.ReferenceImage{Size: catalog.Size{Width: 4000, Height: 4000}, Pixels: make([]byte, 64_000_000)}
	if _, err := editor.SetImage(t.Context(), huge); !fault.Is(err, fault.Invalid) {
		t.Errorf("an image that is too large: %v", err)
	}
}
