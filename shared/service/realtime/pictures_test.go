package realtime_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/testkit/await"
)

func TestHostilePictureDelaysNoOthers(t *testing.T) {
	w := newWorld(t, setup{engine: frame.New(time.Now, func() uint32 { return 7 })})
	other := w.open("gen-2.5", rival)
	for _, model := range []string{"gen-2.5", "gen-vton-3.6"} {
		for name, picture := range map[string][]byte{
			"a WebP larger than its canvas": mediatest.WebPOverCanvas(t),
			"a WebP bomb":                   mediatest.WebPBomb(),
			"one pixel":                     square(t, 1, red),
			"seven pixels, all alike":       square(t, 7, red),
		} {
			t.Run(model+", "+name, func(t *testing.T) {
				c := w.open(model, studio)
				c.t = t
				c.setImage(picture)
				if m := c.next(); m.Type != "set_image_ack" {
					t.Errorf("got %+v", m)
				}
				c.show(plain(320, 180, color.White))
				if m := c.next(); m.frame == nil {
					t.Errorf("got %+v", m)
				}
				other.show(plain(32, 16, color.White))
				if m := other.next(); m.frame == nil {
					t.Errorf("another session got %+v", m)
				}
			})
		}
	}
}

// trap is an engine that panics in the method that its field names.
type trap struct{ in string }

func (e trap) Open(context.Context, *catalog.Model) (engine.LiveEditor, error) {
	return &trapped{e.in, canvas{painter: &painter{}}}, nil
}

type trapped struct {
	in string
	canvas
}

func (e *trapped) SetPrompt(_ context.Context, prompt string) (engine.Outcome, error) {
	e.spring("prompt " + prompt)
	return engine.Outcome{}, nil
}

func (e *trapped) SetImage(context.Context, *engine.ReferenceImage) (engine.Outcome, error) {
	e.spring("image")
	return engine.Outcome{}, nil
}

func (e *trapped) Edit(context.Context, *engine.Picture) (*engine.Picture, error) {
	e.spring("edit")
	return filled(image.Rect(0, 0, 32, 16), red), nil
}

func (e *trapped) spring(in string) {
	if e.in == in {
		panic("a fault of the engine")
	}
}

// echo expands a prompt by repeating it, after the test has received the acknowledgement.
type echo struct{ acknowledged chan struct{} }

func (e echo) Enhance(ctx context.Context, prompt string, _ int) (string, error) {
	select {
	case <-e.acknowledged:
		return prompt + prompt, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func TestPanicEndsOnlyItsSession(t *testing.T) {
	acknowledged := make(chan struct{})
	for in, provoke := range map[string]func(c *client){
		"edit":     func(c *client) { c.show(plain(32, 16, red)) },
		"prompt x": func(c *client) { c.say(`{"type":"prompt","prompt":"x"}`) },
		"prompt xx": func(c *client) {
			c.say(`{"type":"prompt","prompt":"x"}`)
			c.ack("prompt_ack", "")
			acknowledged <- struct{}{}
		},
		"image": func(c *client) { c.setImage(square(t, 8, red)) },
	} {
		t.Run(in, func(t *testing.T) {
			w := newWorld(t, setup{engine: trap{in: in}, enhancer: echo{acknowledged}})
			other := w.open("gen-2.5", rival)
			for range 2 * runtime.GOMAXPROCS(0) { // more than can be edited concurrently
				c := w.open("gen-2.5", studio)
				provoke(c)
				if m := c.next(); m.Type != "error" || m.Error != "Internal error" {
					t.Errorf("got %+v", m)
				}
				c.ends("internal_error", websocket.StatusInternalError, "Internal error")
			}
			w.active("studio", 0)
			other.say(`{"type":"nothing"}`)
			if m := other.next(); m.Type != "error" || m.closed != nil {
				t.Errorf("another session got %+v", m)
			}
			if log := w.log.String(); !strings.Contains(log, "a fault of the engine") || !strings.Contains(log, "trapped") {
				t.Error("the log has no panic with its stack")
			}
		})
	}
	t.Run("open", func(t *testing.T) {
		w := newWorld(t, setup{engine: &sometimes{}})
		c := w.dial("gen-2.5", studio)
		if m := c.next(); m.Type != "error" || m.Error != "Internal error" {
			t.Errorf("got %+v", m)
		}
		w.active("studio", 0)
		w.open("gen-2.5", studio)
	})
}

// sometimes is an engine that panics when its second session is opened, which is the first after w.ready.
type sometimes struct{ opened atomic.Int32 }

func (e *sometimes) Open(ctx context.Context, m *catalog.Model) (engine.LiveEditor, error) {
	if e.opened.Add(1) == 2 {
		panic("a fault of the engine")
	}
	return (&painter{}).Open(ctx, m)
}

// slowPictures does not finish decoding the picture called slow until the test releases it.
type slowPictures struct {
	slow    []byte
	begun   chan struct{}
	release chan struct{}
}

func (p slowPictures) Still(ctx context.Context, data []byte, _ string, _ int) ([]byte, catalog.Size, error) {
	if bytes.Equal(data, p.slow) {
		p.begun <- struct{}{}
		select {
		case <-p.release:
		case <-ctx.Done():
			return nil, catalog.Size{}, ctx.Err()
		}
	}
	return make([]byte, 4), catalog.Size{Width: 1, Height: 1}, nil
}

func TestSlowImagesDelayOnlyTheirAccount(t *testing.T) {
	slow := slowPictures{square(t, 8, red), make(chan struct{}, 10), make(chan struct{})}
	w := newWorld(t, setup{pictures: slow})
	first, second, other := w.open("gen-2.5", studio), w.open("gen-2.5", studio), w.open("gen-2.5", rival)
	third := w.open("gen-2.5", studio)
	first.setImage(slow.slow)
	await.Receive(t, "slow.begun", slow.begun)
	second.setImage(slow.slow)
	other.setImage(square(t, 16, red))
	other.ack("set_image_ack", "")
	if len(slow.begun) > 0 {
		t.Error("two images of an account are decoded concurrently")
	}
	// A file is read only when it is the account's turn, so that waiting images take no memory.
	ref := w.store("studio", square(t, 8, red))
	third.say(`{"type":"set_image","image_ref":"` + ref + `"}`)
	third.painted(colorOf("")) // the frame shows that the message has arrived
	if err := w.files.Delete(t.Context(), "studio", ref); err != nil {
		t.Fatal(err)
	}
	close(slow.release)
	first.ack("set_image_ack", "")
	second.ack("set_image_ack", "")
	third.ack("set_image_ack", "image_ref must be the id of a stored file.")
}

// Frames count until they have been edited or replaced, or their session has ended.
func TestWaitingFramesShareMemoryLimit(t *testing.T) {
	p := &painter{}
	release, entered := make(chan struct{}), make(chan struct{}, 10)
	block := func(ctx context.Context) { entered <- struct{}{}; <-release }
	p.before.Store(&block)
	w := newWorld(t, setup{engine: p, textMemory: 250_000})
	large := append(plain(32, 16, color.White), make([]byte, 100_000)...)
	first, second := w.open("gen-2.5", studio), w.open("gen-2.5", studio)
	first.show(large)
	await.Receive(t, "an edit begins", entered)
	first.show(large) // waits
	first.say(`{"type":"unknown"}`)
	first.next() // the frame has arrived
	second.show(large)
	if m := second.next(); m.Error != "The server is busy. Try again." {
		t.Errorf("got %+v, want an error to try again", m)
	}
	close(release)
	for range 2 {
		if m := first.next(); m.frame == nil {
			t.Errorf("got %+v, want an edited frame", m)
		}
	}
	for range 5 { // nothing is counted for ever
		second.show(large)
		if m := second.next(); m.frame == nil {
			t.Errorf("got %+v, want an edited frame", m)
		}
	}
}

// Long messages of one account do not affect others.
func TestLongMessagesShareMemoryLimit(t *testing.T) {
	slow := slowPictures{square(t, 8, red), make(chan struct{}, 10), make(chan struct{})}
	w := newWorld(t, setup{pictures: slow, textMemory: 350_000})
	// An unknown member pads the message to make it long.
	set := func(c *client, picture []byte) {
		image := base64.StdEncoding.EncodeToString(picture)
		c.say(`{"type":"set_image","image_data":"` + image + `","padding":"` + strings.Repeat("x", 100_000) + `"}`)
	}
	var holding []*client
	for range 3 {
		c := w.open("gen-2.5", studio)
		set(c, slow.slow)
		c.painted(colorOf("")) // the frame shows that the message has arrived
		holding = append(holding, c)
	}
	fourth, other := w.open("gen-2.5", studio), w.open("gen-2.5", rival)
	set(fourth, square(t, 16, red))
	if m := fourth.next(); m.Type != "error" || m.Error != "The server is busy. Try again." {
		t.Errorf("got %+v, want an error to try again", m)
	}
	fourth.show(append(plain(32, 16, color.White), make([]byte, 100_000)...))
	if m := fourth.next(); m.Error != "The server is busy. Try again." {
		t.Errorf("a large frame got %+v, want an error to try again", m)
	}
	fourth.painted(colorOf(""))
	set(other, square(t, 16, red))
	other.ack("set_image_ack", "")
	close(slow.release)
	for _, c := range holding {
		c.ack("set_image_ack", "")
	}
	set(fourth, square(t, 16, red))
	fourth.ack("set_image_ack", "")
}
