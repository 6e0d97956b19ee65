package look

import (
	"math"
	"sync"

	"cutroom/shared/engine/preview/look/noise"
)

// brush paints in strokes that follow swirling lines.
type brush struct {
	bristle, length float64
	// swirl is the number of eddies per unit.
	swirl float64

	mu sync.Mutex
	// laid is a cache of the last strokes, because several textures of a look need them. Sheets of the same area get
	// the same strokes even if their sizes in pixels differ.
	laid strokes
}

// strokes is noise smeared along lines, with mean 0 and standard deviation 1, plus the stroke
// direction at every point. It is read-only.
type strokes struct {
	*Sheet
	directions [][2]float32
}

func (b *brush) lay(s *Sheet) strokes {
	b.mu.Lock()
	defer b.mu.Unlock()
	sheet := s.coarse(b.bristle)
	if last := b.laid.Sheet; last == nil || last.Width != sheet.Width || last.Height != sheet.Height ||
		math.Abs(last.Unit-sheet.Unit) > 1e-6*sheet.Unit || last.Seed != sheet.Seed {
		b.laid = b.draw(s, sheet)
	}
	return b.laid
}

// draw draws strokes on a coarse sheet by line integral convolution (Cabral and Leedom, 1993).
func (b *brush) draw(s, laid *Sheet) strokes {
	flow := s.field(5)
	spots := &Sheet{Width: laid.Width, Height: laid.Height, Unit: laid.Unit, Values: make([]float32, len(laid.Values))}
	directions := make([][2]float32, len(laid.Values))
	laid.rows(func(row int) {
		source := noise.NewSource(s.Seed, 6, uint64(row))
		for i := range laid.Width {
			at := row*laid.Width + i
			spots.Values[at] = float32(source.Normal())
			x, y := float64(i)/laid.Unit, float64(row)/laid.Unit
			sin, cos := math.Sincos(0.4 + 2.4*math.Pi*flow.Fractal(x*b.swirl, y*b.swirl, 2))
			directions[at] = [2]float32{float32(cos), float32(sin)}
		}
	})
	steps := max(3, int(b.length*laid.Unit/2))
	laid.rows(func(row int) {
		for i := range laid.Width {
			sum := spots.Values[row*laid.Width+i]
			// Follow the line both ways in one loop, because each step in one direction has to wait for the previous
			// one.
			x, y := float64(i)+0.5, float64(row)+0.5
			ahead, behind := [2]float64{x, y}, [2]float64{x, y}
			for range steps {
				d := directions[wrap(int(ahead[1]), laid.Height)*laid.Width+wrap(int(ahead[0]), laid.Width)]
				e := directions[wrap(int(behind[1]), laid.Height)*laid.Width+wrap(int(behind[0]), laid.Width)]
				ahead = [2]float64{ahead[0] + float64(d[0]), ahead[1] + float64(d[1])}
				behind = [2]float64{behind[0] - float64(e[0]), behind[1] - float64(e[1])}
				sum += float32(spots.between(ahead[0], ahead[1])) + float32(spots.between(behind[0], behind[1]))
			}
			// Noise that is interpolated between spots has, on average, 4/9 of the variance.
			laid.Values[row*laid.Width+i] = sum / float32(math.Sqrt(1+float64(2*steps)*4/9))
		}
	})
	return strokes{laid, directions}
}

// ridges draws the paint's relief, lit from the upper left, for Add layers. Its values are centered on 1/2.
func (b *brush) ridges(depth float64) Texture {
	return func(s *Sheet) {
		strokes := b.lay(s)
		s.fill(func(x, y float64) float64 {
			u, v := x*strokes.Unit, y*strokes.Unit
			here := strokes.between(u, v)
			return 0.5 + depth*(0.30*(here-strokes.between(u+0.8, v+0.8))+0.14*here)
		})
	}
}

// drag returns how far the strokes drag the colors, across or down, for a Warp.
func (b *brush) drag(down bool) Texture {
	axis := 0
	if down {
		axis = 1
	}
	return func(s *Sheet) {
		laid := b.lay(s)
		pull := *laid.Sheet
		pull.Values = make([]float32, len(laid.Values))
		for i, d := range laid.directions {
			pull.Values[i] = 0.5 + 0.25*laid.Values[i]*d[axis]
		}
		s.fill(func(x, y float64) float64 { return pull.between(x*pull.Unit, y*pull.Unit) })
	}
}

func (b *brush) dragged(reach float64) Warp {
	return Warp{Across: b.drag(false), Down: b.drag(true), Reach: reach}
}
