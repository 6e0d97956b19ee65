// Package frame edits live frames on the CPU, one at a time. It is the preview engine for realtime sessions.
//
// It draws the same looks as package preview draws for finished videos, but in Go and at 640x360, fast enough for live
// frames on one core. Like package preview, it changes colors, edges and textures, and does not recognize objects.
package frame

import (
	"context"
	"image"
	"sync"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/understanding"
)

// Edited frames fit into Box, whose sides are swapped for portrait frames.
var Box = catalog.Size{Width: 640, Height: 360}

const maxPixels = 1920 * 1088

// Engine creates editors. It is safe for concurrent use.
type Engine struct {
	now  func() time.Time
	seed func() uint32
}

var _ engine.LiveEngine = (*Engine)(nil)

// The clock drives all moving layers. The function seed is called once per session and returns the session's seed.
func New(now func() time.Time, seed func() uint32) *Engine { return &Engine{now: now, seed: seed} }

func (e *Engine) Open(_ context.Context, m *catalog.Model) (engine.LiveEditor, error) {
	return &editor{engine: e, kind: m.Kind, seed: e.seed(), work: &workspace{scalers: map[[4]int]*resampler{}}}, nil
}

type editor struct {
	engine *Engine
	kind   catalog.Kind
	seed   uint32
	work   *workspace
	began  time.Time
	edited engine.Picture

	mu sync.Mutex
	// asked is the latest request. made is the plan that was compiled last, possibly for an earlier request.
	asked request
	made  *plan
}

// request is a session's request. Images are compared by identity.
type request struct {
	prompt string
	image  *reference
}

type plan struct {
	program *program
	// finish depends on the first frame, e.g. to match its colors to the reference. It may be nil.
	finish step
	settle func(w *workspace) step
}

// SetPrompt prepares the look while frames are edited with the previous look.
func (e *editor) SetPrompt(_ context.Context, prompt string) (engine.Outcome, error) {
	return e.ask(func(r *request) { r.prompt = prompt }), nil
}

func (e *editor) SetImage(_ context.Context, sent *engine.ReferenceImage) (engine.Outcome, error) {
	image := newReference(sent)
	return e.ask(func(r *request) { r.image = image }), nil
}

// ask changes the request and prepares its plan for the session's frame size. It returns which
// parts of the request were understood.
func (e *editor) ask(change func(*request)) engine.Outcome {
	e.mu.Lock()
	before := e.asked
	change(&e.asked)
	asked, made := e.asked, e.made
	e.mu.Unlock()
	read := e.read(asked)
	outcome := engine.Outcome{Engine: understanding.Engine, Understood: read.Understood, Notice: read.Notice}
	if made == nil || asked == before {
		return outcome
	}
	e.prepare(asked, made.program.size)
	return outcome
}

func (e *editor) read(asked request) understanding.Result {
	return understanding.Of(understanding.Request{Kind: e.kind, Prompt: asked.prompt, Reference: asked.image != nil, Live: true})
}

// current returns the plan for frames of the given size. ask has already prepared it unless the size is new. If the
// request has changed in the meantime, the plan is used only for this frame.
func (e *editor) current(size catalog.Size) *plan {
	made, asked := e.state()
	if made != nil && made.program.size == size {
		return made
	}
	return e.prepare(asked, size)
}

func (e *editor) prepare(asked request, size catalog.Size) *plan {
	// Do not hold the lock here. A panic in plan affects only one session, but unlocking the mutex twice would end
	// the process.
	next := e.plan(asked, size)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked == asked {
		e.made = next
	}
	return next
}

func (e *editor) state() (made *plan, asked request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.made, e.asked
}

func (e *editor) Plans(picture *engine.Picture) bool {
	made, _ := e.state()
	return made == nil || made.program.size != fitted(picture)
}

func fitted(picture *engine.Picture) catalog.Size {
	return Box.Fit(catalog.Size{Width: picture.Rect.Dx(), Height: picture.Rect.Dy()})
}

func (e *editor) plan(asked request, size catalog.Size) *plan {
	p := &plan{}
	read := e.read(asked)
	switch {
	case len(read.Understood) == 0:
		p.program = &program{size: size}
		return p
	case read.ByReference:
		p.program = compile(look.Reference(e.seed), size)
	default:
		p.program = compile(look.Parse(asked.prompt, e.seed).Live(), size)
	}
	if asked.image != nil {
		p.settle = asked.image.transfer
	}
	return p
}

// Edit implements [engine.LiveEditor]. Errors: fault.Invalid if the frame is empty or too large; the context's.
func (e *editor) Edit(ctx context.Context, picture *engine.Picture) (*engine.Picture, error) {
	have := catalog.Size{Width: picture.Rect.Dx(), Height: picture.Rect.Dy()}
	switch {
	case have.Width < 1 || have.Height < 1:
		return nil, fault.New(fault.Invalid, "The frame is empty.")
	case have.Width*have.Height > maxPixels:
		return nil, fault.New(fault.Invalid, "The frame is larger than 1920x1088 pixels.")
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	size, by := fitted(picture), fullRange
	if picture.Narrow {
		by = narrowRange
	}
	now := e.engine.now()
	if e.began.IsZero() {
		e.began = now
	}
	p := e.current(size)
	switch idle := p.idle(); {
	case idle && have == size && picture.SubsampleRatio == image.YCbCrSubsampleRatio420:
		return picture, nil
	case idle:
		e.work.resize(&picture.YCbCr, size)
	default:
		e.work.begin(p.program, &picture.YCbCr, by)
		p.run(e.work, now.Sub(e.began))
		e.work.colors.sized(size)
		e.work.picture.split(&e.work.colors.YCbCr, by)
	}
	e.edited = engine.Picture{YCbCr: e.work.colors.YCbCr, Narrow: picture.Narrow}
	return &e.edited, nil
}

func (p *plan) idle() bool { return len(p.program.steps) == 0 && p.settle == nil && p.finish == nil }

// Edits are never concurrent, so run may modify the plan.
func (p *plan) run(w *workspace, at time.Duration) {
	p.program.run(w, at)
	if p.settle != nil {
		p.finish, p.settle = p.settle(w), nil
	}
	if p.finish != nil {
		p.finish(w, at)
	}
}

func (e *editor) Close() { e.work, e.made = nil, nil }

// begin loads a frame for a program. If the program starts with luma and chroma, it loads only these planes.
func (w *workspace) begin(p *program, from *image.YCbCr, by *colors) {
	if p.planar != (catalog.Size{}) {
		w.resize(from, p.planar)
		by.widen(&w.colors)
		return
	}
	w.picture.sized(p.size)
	if from.Bounds().Size() != (image.Point{X: p.size.Width, Y: p.size.Height}) ||
		from.SubsampleRatio != image.YCbCrSubsampleRatio420 {
		w.resize(from, p.size)
		from = &w.colors.YCbCr
	}
	w.picture.join(from, by)
}

// resize scales a picture to a size. It fills only the luma and chroma planes.
func (w *workspace) resize(from *image.YCbCr, size catalog.Size) {
	w.colors.sized(size)
	have := from.Bounds().Size()
	w.scaler(catalog.Size{Width: have.X, Height: have.Y}, size).scale(w.colors.Y, from.Y, from.YStride)
	s := w.scaler(chromaSize(from), chromaSize(&w.colors.YCbCr))
	s.scale(w.colors.Cb, from.Cb, from.CStride)
	s.scale(w.colors.Cr, from.Cr, from.CStride)
}

func chromaSize(p *image.YCbCr) catalog.Size {
	by := map[image.YCbCrSubsampleRatio]image.Point{
		image.YCbCrSubsampleRatio444: {1, 1}, image.YCbCrSubsampleRatio422: {2, 1}, image.YCbCrSubsampleRatio420: {2, 2},
		image.YCbCrSubsampleRatio440: {1, 2}, image.YCbCrSubsampleRatio411: {4, 1}, image.YCbCrSubsampleRatio410: {4, 2},
	}[p.SubsampleRatio]
	size := p.Bounds().Size().Add(by)
	return catalog.Size{Width: (size.X - 1) / by.X, Height: (size.Y - 1) / by.Y}
}
