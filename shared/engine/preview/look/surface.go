package look

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// The textures of what pictures are painted on and with. They are drawn around
// 1/2, for Add layers.

// paper is the tooth of rough paper, lit from the upper left.
func paper(depth float64) Texture {
	return func(s *Sheet) {
		tooth, pulp := s.field(1), s.fractal(s.field(2), 7, 3)
		const e = 0.0016
		s.fill(func(x, y float64) float64 {
			relief := tooth.Fractal(x*95, y*95, 2) - tooth.Fractal((x+e)*95, (y+e)*95, 2)
			mottle := pulp(x, y)
			return 0.5 + depth*(1.5*relief+0.22*mottle)
		})
	}
}

// canvas is a plain weave with uneven threads.
func canvas(depth float64) Texture {
	return func(s *Sheet) {
		uneven := s.field(1)
		const threads = 130
		s.fill(func(x, y float64) float64 {
			u := x*threads + 0.45*uneven.At(x*9, y*40)
			v := y*threads + 0.45*uneven.At(x*40+50, y*9+50)
			over := math.Sin(u*math.Pi) * math.Sin(v*math.Pi)
			warp, weft := math.Abs(math.Sin(u*math.Pi)), math.Abs(math.Sin(v*math.Pi))
			weave := warp
			if over > 0 {
				weave = weft
			}
			return 0.5 + depth*(weave-0.62+0.25*uneven.At(x*150, y*150))
		})
	}
}

// pigment is how watercolour settles: soft blooms with darker rims.
func pigment(depth float64) Texture {
	return func(s *Sheet) {
		wash, grains := s.fractal(s.field(3), 3.2, 4), s.field(4)
		s.fill(func(x, y float64) float64 {
			n := wash(x, y)
			rim := bell(n * 11)
			return 0.5 + depth*(0.9*n-0.55*rim+0.35*grains.Fractal(x*60, y*60, 2))
		})
	}
}

// hatching is pencil strokes, thicker where the picture below is darker once a
// steep grade follows.
func hatching(depth float64) Texture {
	return func(s *Sheet) {
		hand := s.field(7)
		// Two layers of strokes, each of a hand of its own.
		lines := func(angle, every, apart float64) func(x, y float64) float64 {
			sin, cos := math.Sincos(angle)
			bend := s.smooth(1.0/80, func(x, y float64) float64 { return hand.Fractal((x+apart)*5, y*5, 2) })
			pressure := s.smooth(1.0/176, func(x, y float64) float64 { return hand.At((x+apart)*22, y*22) })
			return func(x, y float64) float64 {
				across := (x+apart)*sin + y*cos + 0.006*bend(x, y)
				stroke := math.Abs(math.Mod(math.Abs(across)/every, 1)*2 - 1)
				return stroke * (0.75 + 0.5*pressure(x, y))
			}
		}
		one, other := lines(0.85, 0.0115, 0), lines(-0.55, 0.014, 3)
		s.fill(func(x, y float64) float64 {
			v := max(one(x, y), 0.7*other(x, y))
			return 0.5 + depth*(v-0.6+0.5*hand.Fractal(x*170, y*170, 2))
		})
	}
}

// grain is that of photographic film. Size is that of a grain in units.
func grain(amount, size float64) Texture {
	return func(s *Sheet) {
		coarse := s.coarse(size)
		coarse.rows(func(row int) {
			source := noise.NewSource(s.Seed, 8, uint64(row))
			for i := range coarse.Width {
				coarse.Values[row*coarse.Width+i] = float32(source.Normal())
			}
		})
		s.fill(func(x, y float64) float64 { return 0.5 + amount*coarse.between(x*coarse.Unit, y*coarse.Unit) })
	}
}
