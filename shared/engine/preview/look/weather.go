package look

import "math"

// Textures of weather, water and sky, for Screen layers. Moving textures wrap around at the borders.

// snow draws flakes of about the given size in units. count is the number of flakes per square unit.
func snow(amount, size float64, count int) Texture {
	return func(s *Sheet) {
		source := s.source(uint64(40 + count))
		width, height := s.aspect()
		for range int(float64(count) * width * height) {
			x, y := source.Float()*width, source.Float()*height
			radius, strength := size*source.Between(0.5, 1.3), amount*source.Between(0.5, 1)
			s.place(x, y, radius, radius, func(dx, dy float64) float64 {
				return strength * smoothstep(radius, radius*0.25, math.Hypot(dx, dy))
			})
		}
	}
}

// rain draws streaks of the given length in units.
func rain(amount, length float64, count int) Texture {
	return func(s *Sheet) {
		source := s.source(uint64(41 + count))
		width, height := s.aspect()
		const lean = 0.12
		for range int(float64(count) * width * height) {
			x, y := source.Float()*width, source.Float()*height
			reach, strength := length*source.Between(0.5, 1.2)/2, amount*source.Between(0.35, 1)
			s.place(x, y, 0.003+reach*lean, reach, func(dx, dy float64) float64 {
				return strength * smoothstep(0.0022, 0.0004, math.Abs(dx+dy*lean)) * smoothstep(1, 0.2, math.Abs(dy)/reach)
			})
		}
	}
}

// petals draws drifting leaves and blossoms: randomly rotated pointed ellipses.
func petals(amount, size float64, count int) Texture {
	return func(s *Sheet) {
		source := s.source(uint64(42 + count))
		width, height := s.aspect()
		for range int(float64(count) * width * height) {
			x, y := source.Float()*width, source.Float()*height
			long, thin := size*source.Between(0.6, 1.2), source.Between(0.25, 0.6)
			strength := amount * source.Between(0.6, 1)
			sin, cos := math.Sincos(source.Float() * 2 * math.Pi)
			s.place(x, y, long, long, func(dx, dy float64) float64 {
				u, v := (dx*cos+dy*sin)/long, (dy*cos-dx*sin)/(long*thin)
				shape := math.Abs(v) - (1 - u*u)
				vein := 1 - 0.25*smoothstep(0.15, 0.02, math.Abs(v))
				return strength * vein * smoothstep(0.06, -0.12, shape)
			})
		}
	}
}

// bubbles draws thin rings, each with a highlight.
func bubbles(amount float64, count int) Texture {
	return func(s *Sheet) {
		source := s.source(43)
		width, height := s.aspect()
		for range int(float64(count) * width * height) {
			x, y := source.Float()*width, source.Float()*height
			radius := 0.004 + 0.02*math.Pow(source.Float(), 3)
			s.place(x, y, radius*1.2, radius*1.2, func(dx, dy float64) float64 {
				r := math.Hypot(dx, dy) / radius
				spark := smoothstep(0.35, 0.1, math.Hypot(dx/radius+0.4, dy/radius+0.4))
				return amount * (0.7*smoothstep(0.7, 0.95, r)*smoothstep(1.08, 0.98, r) + 0.9*spark + 0.12*smoothstep(1, 0.9, r))
			})
		}
	}
}

// flames draws tongues of fire that rise from the lower border to about the given fraction of the height, for Screen
// layers.
func flames(amount, rise float64) Texture {
	return func(s *Sheet) {
		tongues := s.field(45)
		_, height := s.aspect()
		s.fill(s.smooth(1.0/240, func(x, y float64) float64 {
			n := tongues.Fractal(x*7+0.5*tongues.At(x*3, y*3), y*2.2, 4)
			return amount * smoothstep(0, 0.6, 0.5+0.7*n-0.5*(height-y)/height/rise)
		}).at)
	}
}

func embers(amount float64, count int) Texture {
	return func(s *Sheet) {
		source := s.source(46)
		width, height := s.aspect()
		for range int(float64(count) * width * height) {
			x, y := source.Float()*width, source.Float()*height
			radius, strength := source.Between(0.0015, 0.006), amount*source.Between(0.3, 1)
			s.place(x, y, radius*2.5, radius*3.5, func(dx, dy float64) float64 {
				return strength * bell(math.Hypot(dx, dy*0.7)/radius)
			})
		}
	}
}

// mist draws a low bank of fog without a seam at the sides.
func mist(amount float64) Texture {
	return func(s *Sheet) {
		bank := s.field(47)
		width, height := s.aspect()
		// This is a quarter of the shortest wave, which is 1/54 of a unit.
		density := s.smooth(1.0/216, func(x, y float64) float64 {
			// Map x to a circle in the noise field, so that both ends of a row match.
			turn := x / width * 2 * math.Pi
			sin, cos := math.Sincos(turn)
			return bank.Fractal(20+0.5*cos+y*0.3, 20+0.5*sin+y*3.4, 5)
		})
		s.fill(func(x, y float64) float64 {
			return amount * clamp(0.32+0.5*smoothstep(0.1, 0.9, y/height)+0.6*density.at(x, y))
		})
	}
}
