package look

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// brush is how paint is put on: in strokes that follow swirling lines. The
// textures of one brush and seed belong together.
type brush struct {
	// bristle and length are a stroke's finest line and its length, in units.
	bristle, length float64
	// swirl is the number of eddies in a unit.
	swirl float64
}

// lay draws the strokes: noise that is smeared along the lines (line integral
// convolution, Cabral and Leedom, 1993), of mean 0 and standard deviation 1. It
// returns the direction of the stroke at every point too.
func (b brush) lay(s *Sheet) (strokes *Sheet, directions [][2]float32) {
	flow := s.field(5)
	strokes = s.coarse(b.bristle)
	spots := &Sheet{
		Width: strokes.Width, Height: strokes.Height, Unit: strokes.Unit, Values: make([]float32, len(strokes.Values)),
	}
	directions = make([][2]float32, len(strokes.Values))
	strokes.rows(func(row int) {
		source := noise.NewSource(s.Seed, 6, uint64(row))
		for i := range strokes.Width {
			at := row*strokes.Width + i
			spots.Values[at] = float32(source.Normal())
			x, y := float64(i)/strokes.Unit, float64(row)/strokes.Unit
			sin, cos := math.Sincos(0.4 + 2.4*math.Pi*flow.Fractal(x*b.swirl, y*b.swirl, 2))
			directions[at] = [2]float32{float32(cos), float32(sin)}
		}
	})
	steps := max(3, int(b.length*strokes.Unit/2))
	strokes.rows(func(row int) {
		for i := range strokes.Width {
			sum := spots.Values[row*strokes.Width+i]
			for _, sign := range []float64{-1, 1} {
				x, y := float64(i)+0.5, float64(row)+0.5
				for range steps {
					d := directions[wrap(int(y), strokes.Height)*strokes.Width+wrap(int(x), strokes.Width)]
					x, y = x+sign*float64(d[0]), y+sign*float64(d[1])
					sum += float32(spots.between(x, y))
				}
			}
			// Between spots, noise has 4/9 of its variance on average.
			strokes.Values[row*strokes.Width+i] = sum / float32(math.Sqrt(1+float64(2*steps)*4/9))
		}
	})
	return strokes, directions
}

// ridges are the relief of the paint, lit from the upper left, around 1/2.
func (b brush) ridges(depth float64) Texture {
	return func(s *Sheet) {
		strokes, _ := b.lay(s)
		s.fill(func(x, y float64) float64 {
			u, v := x*strokes.Unit, y*strokes.Unit
			here := strokes.between(u, v)
			return 0.5 + depth*(0.30*(here-strokes.between(u+0.8, v+0.8))+0.14*here)
		})
	}
}

// drag is how far the strokes pull the colours along, for a Warp: its part
// across or down.
func (b brush) drag(down bool) Texture {
	axis := 0
	if down {
		axis = 1
	}
	return func(s *Sheet) {
		strokes, directions := b.lay(s)
		for i, d := range directions {
			strokes.Values[i] = 0.5 + 0.25*strokes.Values[i]*d[axis]
		}
		s.fill(func(x, y float64) float64 { return strokes.between(x*strokes.Unit, y*strokes.Unit) })
	}
}

// dragged is the Warp of a brush.
func (b brush) dragged(reach float64) Warp {
	return Warp{Across: b.drag(false), Down: b.drag(true), Reach: reach}
}
