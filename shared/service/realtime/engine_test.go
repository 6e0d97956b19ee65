package realtime_test

import (
	"context"
	"image/color"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
	"cutroom/shared/testkit/await"
)

// remote is an engine on other hardware. It has a limited number of sessions and does not accept images.
type remote struct {
	painter
	slots atomic.Int32
}

func (r *remote) Open(context.Context, *catalog.Model) (engine.LiveEditor, error) {
	if r.slots.Add(-1) < 0 {
		return nil, fault.New(fault.Unavailable, "The engine has no free session. Try again.")
	}
	return &remoteEditor{canvas{painter: &r.painter, color: colorOf("")}}, nil
}

type remoteEditor struct{ canvas }

func (e *remoteEditor) Offloaded() bool { return true }

func (e *remoteEditor) SetImage(context.Context, *engine.ReferenceImage) (engine.Outcome, error) {
	return engine.Outcome{}, fault.New(fault.Invalid, "The engine accepts no images.")
}

func TestFullEngineReleasesSlot(t *testing.T) {
	full := &remote{}
	full.slots.Store(1) // for the readiness check, which opens a session
	w := newWorld(t, setup{engine: full})
	full.slots.Store(0)
	w.dial("gen-2.5", studio).rejected(websocket.StatusTryAgainLater, tryAgain)
	w.active("studio", 0)
	full.slots.Store(1)
	w.open("gen-2.5", studio)
}

// If the engine rejects an image, the prompt in the same message is not applied either.
func TestImageRejectedByEngineChangesNothing(t *testing.T) {
	r := &remote{}
	r.slots.Store(100)
	c := newWorld(t, setup{engine: r}).open("gen-2.5", studio)
	c.say(`{"type":"prompt","prompt":"blue","enhance_prompt":false}`)
	c.ack("prompt_ack", "")
	c.say(`{"type":"set_image","image_data":null,"prompt":"green","enhance_prompt":false}`)
	c.ack("set_image_ack", "The engine accepts no images.")
	c.painted(colorOf("blue"))
}

func TestHangingRemoteEngineDelaysNoOthers(t *testing.T) {
	r := &remote{}
	r.slots.Store(100)
	w := newWorld(t, setup{engine: r})
	hung := make(chan struct{}, 10)
	hang := func(ctx context.Context) {
		hung <- struct{}{}
		<-ctx.Done()
	}
	r.before.Store(&hang)
	for range cap(hung) {
		w.open("gen-2.5", studio).show(plain(32, 16, color.White))
		await.Receive(t, "hung", hung)
	}
	r.before.Store(nil)
	w.open("gen-2.5", studio).painted(colorOf(""))
}

// planner is an engine that blocks while it prepares a prompt for 64-pixel-wide frames, until it is released.
type planner struct {
	painter
	begun, release chan struct{}
}

func (p *planner) Open(context.Context, *catalog.Model) (engine.LiveEditor, error) {
	return &planning{canvas{painter: &p.painter, color: colorOf("")}, p}, nil
}

type planning struct {
	canvas
	planner *planner
}

func (e *planning) Plans(picture *engine.Picture) bool { return picture.Rect.Dx() == 64 }

func (e *planning) Edit(ctx context.Context, picture *engine.Picture) (*engine.Picture, error) {
	if e.Plans(picture) {
		e.planner.begun <- struct{}{}
		select {
		case <-e.planner.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return e.canvas.Edit(ctx, picture)
}

func TestSlowPlansDoNotDelayOtherAccounts(t *testing.T) {
	p := &planner{begun: make(chan struct{}, 100), release: make(chan struct{})}
	w := newWorld(t, setup{engine: p})
	other := w.open("gen-2.5", rival)
	var slow []*client
	for range runtime.GOMAXPROCS(0) {
		c := w.open("gen-2.5", studio)
		c.show(plain(64, 32, color.White))
		slow = append(slow, c)
	}
	await.Receive(t, "begun", p.begun)
	other.painted(colorOf(""))
	close(p.release)
	for _, c := range slow {
		if m := c.next(); m.frame == nil {
			t.Errorf("got %+v", m)
		}
	}
}
