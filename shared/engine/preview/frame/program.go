package frame

import (
	"fmt"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
)

// program is a look compiled for frames of one size. It is immutable and may be shared.
type program struct {
	size  catalog.Size
	steps []step
	// planar is the size of the luma and chroma planes that the first step expects. If it is zero, the first step
	// expects the RGB picture.
	planar catalog.Size
}

// step is an operation on the workspace. Its parameter `at` is the time since the session's first frame.
type step func(w *workspace, at time.Duration)

// workspace is an editor's memory, which is reused for every frame: the picture and the operations' buffers.
type workspace struct {
	picture raster
	// other is a second picture of the same size.
	other, small raster
	colors       chroma
	blur         blurrer
	bilateral    bilateral
	scalers      map[[4]int]*resampler
	// These are scratch memory: a plane, a row, and the ratios for drawing lines.
	plane, row, ratios []uint8
}

// maxScalers limits the number of cached scalers, even if the frame size keeps changing.
const maxScalers = 16

func (w *workspace) scaler(from, to catalog.Size) *resampler {
	key := [4]int{from.Width, from.Height, to.Width, to.Height}
	s := w.scalers[key]
	if s == nil {
		if len(w.scalers) >= maxScalers {
			clear(w.scalers)
		}
		s = newResampler(from.Width, from.Height, to.Width, to.Height)
		w.scalers[key] = s
	}
	return s
}

// compile prepares a look for a frame size.
//
// Operations that leave no fine detail run at half size. So do later operations, as long as they add no detail.
// Operations that change only shapes work on luma and chroma, the format of incoming pictures.
func compile(l look.Look, size catalog.Size) *program {
	p := &program{size: size}
	half := &program{size: p.part(2)}
	// now is p or half, depending on the picture's current size.
	now := p
	for at := 0; at < len(l.Ops); {
		op := l.Ops[at]
		before := now
		switch {
		case p.halves(l.Ops[at:]):
			now = half
		case now == half && !look.Coarse(op):
			now = p
		}
		shapings := now.shapings(l.Ops[at:], at == 0, now == p)
		var tones *tones
		if len(shapings) > 0 || at == 0 {
			tones = now.tones(l.Ops[at+len(shapings):], now == p)
		}
		if len(shapings) > 0 || tones != nil {
			if at == 0 {
				p.planar = now.size
			} else {
				p.steps = append(p.steps, now.divide)
			}
			p.steps = append(p.steps, now.shape(shapings, tones))
			at += len(shapings)
			if tones != nil {
				at++
			}
			continue
		}
		if now == half && before == p {
			if at == 0 {
				p.planar = half.size
				p.steps = append(p.steps, half.shape(nil, nil))
			} else {
				p.steps = append(p.steps, half.reduce)
			}
		}
		at++
		if lines, ok := op.(look.Lines); ok {
			p.steps = append(p.steps, p.lines(lines, before))
			continue
		}
		if now == p && before == half {
			p.steps = append(p.steps, p.restore)
		}
		if warp, ok := op.(look.Warp); ok {
			p.steps = append(p.steps, p.warp(warp, l.Seed, now))
			continue
		}
		p.steps = append(p.steps, now.step(op, l.Seed))
	}
	if now == half {
		p.steps = append(p.steps, p.restore)
	}
	return p
}

// tones returns the color change at the start of the look, for luma and chroma. It returns nil if the look does not
// start with a color change, or if the change is too expensive.
func (p *program) tones(ops []look.Op, whole bool) *tones {
	if len(ops) > 0 {
		if op, ok := ops[0].(look.Grade); ok && !op.LUT.Nearest && (whole || look.Coarse(op)) {
			return newTones(op.LUT)
		}
	}
	return nil
}

// The steps follow package preview, so that the live picture looks like the finished video. They
// are cheaper where the difference is hard to see.
func (p *program) step(op look.Op, seed uint32) step {
	switch op := op.(type) {
	case look.Layer:
		return p.layer(op, seed)
	case look.Pixelate:
		return p.pixelate(op)
	case look.Clarity:
		return p.sharpened(op)
	case look.Grade:
		t := newTable(op.LUT)
		return func(w *workspace, _ time.Duration) { t.apply(w.picture) }
	case look.Blur:
		sigma := p.length(op.Radius)
		return func(w *workspace, _ time.Duration) {
			for _, plane := range w.picture.planes {
				w.blur.gaussian(plane, p.size.Width, p.size.Height, sigma)
			}
		}
	case look.Bloom:
		return p.bloom(op)
	case look.Fringe:
		shift := p.pixels(op.Shift)
		return func(w *workspace, _ time.Duration) { fringe(w, shift) }
	}
	panic(fmt.Sprintf("frame: no rendering of %T", op))
}

func (p *program) run(w *workspace, at time.Duration) {
	for _, s := range p.steps {
		s(w, at)
	}
}

func (p *program) length(units float64) float64 {
	return units * float64(min(p.size.Width, p.size.Height))
}

func (p *program) pixels(units float64) int { return look.Pixels(units, p.size.Width, p.size.Height) }

func (p *program) part(factor int) catalog.Size {
	return catalog.Size{Width: max(1, p.size.Width/factor), Height: max(1, p.size.Height/factor)}
}
