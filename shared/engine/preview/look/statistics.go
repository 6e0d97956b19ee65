package look

import (
	"math"

	"cutroom/shared/engine/preview/look/oklab"
)

// Statistics describes a picture's colors: the mean and standard deviation of Oklab's L, A and B.
type Statistics struct{ Mean, Spread [3]float64 }

// Measure reads pixels of three bytes each: red, green, blue.
func Measure(pixels []byte) Statistics {
	var s Statistics
	count := float64(len(pixels) / 3)
	for i := 0; i+2 < len(pixels); i += 3 {
		c := oklab.FromSRGB(float64(pixels[i])/255, float64(pixels[i+1])/255, float64(pixels[i+2])/255)
		for axis, v := range [3]float64{c.L, c.A, c.B} {
			s.Mean[axis] += v / count
			s.Spread[axis] += v * v / count
		}
	}
	for axis, mean := range s.Mean {
		s.Spread[axis] = math.Sqrt(max(0, s.Spread[axis]-mean*mean))
	}
	return s
}

// Transfer returns the color change that gives a picture with the first statistics the colors of the second (Reinhard
// et al., "Color Transfer between Images", 2001). The contrast change is limited, so that a reference in one flat color
// does not wipe out the picture.
func Transfer(from, to Statistics) *LUT {
	var change [3]float64
	for axis, least := range [3]float64{0.08, 0.012, 0.012} {
		change[axis] = max(0.45, min(2.2, math.Hypot(to.Spread[axis], least)/math.Hypot(from.Spread[axis], least)))
	}
	return NewLUT(func(c oklab.Color) oklab.Color {
		out := [3]float64{c.L, c.A, c.B}
		for axis, v := range out {
			out[axis] = to.Mean[axis] + change[axis]*(v-from.Mean[axis])
		}
		// Keep half of the picture's own lightness contrast, which carries the scene.
		l := 0.5*out[0] + 0.5*(c.L+0.5*(to.Mean[0]-from.Mean[0]))
		// Reduce color casts in black and white, which no light would cause.
		k := smoothstep(-0.02, 0.16, l) * smoothstep(1.04, 0.90, l)
		k = 0.35 + 0.65*k
		return oklab.Color{L: l, A: out[1] * k, B: out[2] * k}
	})
}
