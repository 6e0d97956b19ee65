package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// flow is ink in water, with endlessly folding colors, for prompts that name no place.
func flow(seed uint32) Scene {
	source := noise.NewSource(uint64(seed), 61)
	first, second := noise.NewField(uint64(seed), 62), noise.NewField(uint64(seed), 63)
	inks := [][]uint32{
		{0x120a3a, 0x5a1f8a, 0xe0457b, 0xff9a62, 0xfff0c8}, {0x04202f, 0x0b5c73, 0x2aa6a0, 0xb6e3b4, 0xfff9de},
		{0x10163a, 0x24479e, 0x4f9de0, 0xb9e4f4, 0xffffff}, {0x2a0a14, 0x8f1d2c, 0xe2572b, 0xf7b545, 0xfff3c9},
		{0x0d2018, 0x1d5c3f, 0x6aa84f, 0xd9cf6a, 0xfdf6d8}, {0x1b1030, 0x4b3fa0, 0x9d6fd6, 0xf2a7d0, 0xfff0f4},
		{0x161a22, 0x3c5068, 0xc07a4b, 0xf0c48a, 0xfdf3e0}, {0x08131f, 0x123f6b, 0xd94f70, 0xf5a6a0, 0xfdf0e2},
	}[source.Intn(8)]
	colors := make([]stop, len(inks))
	for i, ink := range inks {
		colors[i] = stop{float64(i) / float64(len(inks)-1), hex(ink)}
	}
	scale, phase := source.Between(0.8, 1.4), source.Between(0, 90)
	return Scene{"flow", func(t, aspect float64) shader {
		return func(x, y float64) rgb {
			u, v := (x-aspect/2)*scale+phase, (y-0.5)*scale
			a := first.Fractal(u+0.10*t, v+0.06*t, 2)
			b := first.Fractal(u+30-0.05*t, v+10+0.08*t, 2)
			c := second.Fractal(u*1.2+1.5*a+0.04*t, v*1.2+1.5*b, 3)
			d := second.Fractal(u*1.2+1.3*b+50, v*1.2+1.3*c-0.05*t, 3)
			color := gradient(colors, clamp(0.5+0.62*d+0.22*a))
			// Folds catch the light where the ink bends most.
			fold := math.Abs(c - d)
			color = color.plus(rgb{1, 0.96, 0.9}.times(0.30 * smooth(0.05, 0, math.Abs(fold-0.22))))
			return color.times(0.86 + 0.32*clamp(0.5+c))
		}
	}}
}
