package look

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// Textures of painting surfaces and tools, for Add layers. Their values are centered on 1/2.

// paper is the tooth of rough paper, lit from the upper left.
func paper(depth float64) Texture {
	return func(s *Sheet) {
		tooth, pulp := s.field(1), s.fractal(s.field(2), 7, 3)
		const e = 0.0016
		s.fill(func(x, y float64) float64 {
			relief := tooth.Fractal(x*95, y*95, 2) - tooth.Fractal((x+e)*95, (y+e)*95, 2)
			return 0.5 + depth*(1.5*relief+0.22*pulp.at(x, y))
		})
	}
}

// canvas is a plain weave with uneven threads.
func canvas(depth float64) Texture {
	return func(s *Sheet) {
		uneven := s.field(1)
		const threads = 130
		s.fill(func(x, y float64) float64 {
			warp := math.Sin((x*threads + 0.45*uneven.At(x*9, y*40)) * math.Pi)
			weft := math.Sin((y*threads + 0.45*uneven.At(x*40+50, y*9+50)) * math.Pi)
			weave := math.Abs(warp)
			if warp*weft > 0 {
				weave = math.Abs(weft)
			}
			return 0.5 + depth*(weave-0.62+0.25*uneven.At(x*150, y*150))
		})
	}
}

// pigment draws watercolor as it settles: soft blooms with darker rims.
func pigment(depth float64) Texture {
	return func(s *Sheet) {
		wash, grains := s.fractal(s.field(3), 3.2, 4), s.field(4)
		s.fill(func(x, y float64) float64 {
			n := wash.at(x, y)
			rim := bell(n * 11)
			return 0.5 + depth*(0.9*n-0.55*rim+0.35*grains.Fractal(x*60, y*60, 2))
		})
	}
}

// hatching draws pencil strokes. A steep grade makes them thicker in darker areas.
func hatching(depth float64) Texture {
	return func(s *Sheet) {
		hand := s.field(7)
		// These are two layers of strokes in different directions.
		lines := func(angle, every, apart float64) func(x, y float64) float64 {
			sin, cos := math.Sincos(angle)
			bend := s.smooth(1.0/80, func(x, y float64) float64 { return hand.Fractal((x+apart)*5, y*5, 2) })
			pressure := s.smooth(1.0/176, func(x, y float64) float64 { return hand.At((x+apart)*22, y*22) })
			return func(x, y float64) float64 {
				across := math.Abs((x+apart)*sin+y*cos+0.006*bend.at(x, y)) / every
				stroke := math.Abs((across-math.Floor(across))*2 - 1)
				return stroke * (0.75 + 0.5*pressure.at(x, y))
			}
		}
		ones, others := lines(0.85, 0.0115, 0), lines(-0.55, 0.014, 3)
		s.fill(func(x, y float64) float64 {
			v := max(ones(x, y), 0.7*others(x, y))
			return 0.5 + depth*(v-0.6+0.5*hand.Fractal(x*170, y*170, 2))
		})
	}
}

// grain draws photographic film grain. size is a grain's size in units.
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
