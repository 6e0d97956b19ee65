package look

import "math"

// Textures of lenses, film and light.

// vignette darkens the corners, for Multiply layers. The parameter `from` is where the shade starts: 0 is the center
// and 1 a corner.
func vignette(amount, from float64) Texture {
	return func(s *Sheet) {
		width, height := s.aspect()
		s.fill(func(x, y float64) float64 {
			d := math.Hypot((x/width-0.5)*2, (y/height-0.5)*2) / math.Sqrt2
			return 1 - amount*smoothstep(from, 1.05, d)
		})
	}
}

// frame lightens the borders unevenly, like bare paper around a painting, for Screen layers. width is in units.
func frame(amount, width float64) Texture {
	return func(s *Sheet) {
		edge := s.field(30)
		w, h := s.aspect()
		s.fill(func(x, y float64) float64 {
			d := min(min(x, w-x), min(y, h-y))
			if d > width*(1+0.8+0.25) {
				return 0 // for any noise value, -1 to 1
			}
			d += width * (0.8*edge.Fractal(x*4, y*4, 4) + 0.25*edge.At(x*60, y*60))
			return amount * smoothstep(width, width*0.15, d)
		})
	}
}

// scratches draws the dust and scratches of worn film, for Screen layers.
func scratches(amount float64) Texture {
	return func(s *Sheet) {
		source := s.source(31)
		width, height := s.aspect()
		for range 5 {
			x, from := source.Float()*width, source.Float()*height
			length, lean, strength := source.Between(0.15, 0.7), source.Between(-0.01, 0.01), source.Between(0.25, 0.8)
			s.place(x, from, 0.02, length, func(dx, dy float64) float64 {
				return amount * strength * smoothstep(0.0016, 0.0004,
					math.Abs(dx-lean*math.Sin(dy*7))) * smoothstep(1, 0.6, math.Abs(dy)/length)
			})
		}
		for range 40 {
			x, y, size := source.Float()*width, source.Float()*height, source.Between(0.0015, 0.005)
			squeeze, turn, strength := source.Between(0.3, 1), source.Float()*math.Pi, source.Between(0.3, 0.9)
			sin, cos := math.Sincos(turn)
			s.place(x, y, size, size, func(dx, dy float64) float64 {
				return amount * strength * smoothstep(size, size*0.5, math.Hypot(dx*cos+dy*sin, (dy*cos-dx*sin)/squeeze))
			})
		}
	}
}

// leak draws a light leak from one side of the camera, for Screen layers.
func leak(amount float64) Texture {
	return func(s *Sheet) {
		source, haze := s.source(32), s.field(33)
		width, height := s.aspect()
		side := source.Intn(2)
		at := source.Between(0.15, 0.85) * height
		s.fill(func(x, y float64) float64 {
			d := x
			if side == 1 {
				d = width - x
			}
			d += 0.10 * haze.Fractal(x*1.5, y*1.5, 3)
			return amount * math.Exp(-d*4.2) * (0.45 + 0.55*bell((y-at)*2.2))
		})
	}
}
