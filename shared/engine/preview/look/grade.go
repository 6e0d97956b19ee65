package look

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
	"cutroom/shared/engine/preview/look/oklab"
)

// Adjust is one step of a grade. In Oklab, lightness and chroma can be changed independently.
type Adjust func(oklab.Color) oklab.Color

func light(amount float64) Adjust {
	return func(c oklab.Color) oklab.Color {
		l := clamp(c.L)
		if amount > 0 {
			c.L = l + amount*4*l*(1-l)*(1-0.35*l) + amount*0.15*(1-l)
		} else {
			c.L = l + amount*3*l*(1-0.5*l)
		}
		return c
	}
}

// contrast multiplies the contrast of lightness around a pivot by the given slope.
func contrast(slope, pivot float64) Adjust {
	return func(c oklab.Color) oklab.Color {
		l := pivot + (c.L-pivot)*slope
		if slope > 1 {
			// Use a soft shoulder and toe instead of clipping.
			curve := func(room, over float64) float64 { return room * math.Tanh(over/room) }
			if l > pivot {
				l = pivot + curve(1-pivot, l-pivot)
			} else {
				l = pivot - curve(pivot, pivot-l)
			}
		}
		c.L = l
		return c
	}
}

// fade compresses lightness to the range from low to high, as in old prints.
func fade(low, high float64) Adjust {
	return func(c oklab.Color) oklab.Color {
		c.L = low + clamp(c.L)*(high-low)
		return c
	}
}

func saturate(by float64) Adjust {
	return func(c oklab.Color) oklab.Color {
		c.A, c.B = c.A*by, c.B*by
		return c
	}
}

func vibrance(by float64) Adjust {
	return func(c oklab.Color) oklab.Color {
		k := 1 + (by-1)*math.Exp(-c.Chroma()*7)
		c.A, c.B = c.A*k, c.B*k
		return c
	}
}

// warm moves colors towards amber, or towards blue if the amount is negative.
func warm(amount float64) Adjust { return tint(68, amount) }

// tint moves all colors towards a hue, in degrees, by the given chroma. Black and white move least.
func tint(hue, chroma float64) Adjust {
	to := oklab.FromHue(0, chroma, hue)
	return func(c oklab.Color) oklab.Color {
		k := 0.35 + 0.65*math.Sin(math.Pi*clamp(c.L))
		c.A, c.B = c.A+to.A*k, c.B+to.B*k
		return c
	}
}

func splitTone(shadowHue, shadowChroma, lightHue, lightChroma float64) Adjust {
	shadow, lights := oklab.FromHue(0, shadowChroma, shadowHue), oklab.FromHue(0, lightChroma, lightHue)
	return func(c oklab.Color) oklab.Color {
		up := smoothstep(0.15, 0.85, c.L)
		down := (1 - up) * smoothstep(0, 0.2, c.L+0.08)
		c.A += shadow.A*down + lights.A*up
		c.B += shadow.B*down + lights.B*up
		return c
	}
}

// attract moves every hue towards the nearer of two given hues, in degrees, and multiplies chroma.
func attract(first, second, share, chroma float64) Adjust {
	return func(c oklab.Color) oklab.Color {
		hue := math.Atan2(c.B, c.A) * 180 / math.Pi
		near := first
		if math.Abs(turn(hue, second)) < math.Abs(turn(hue, first)) {
			near = second
		}
		return oklab.FromHue(c.L, c.Chroma()*chroma, hue+turn(hue, near)*share)
	}
}

func turn(from, to float64) float64 { return math.Mod(math.Mod(to-from+180, 360)+360, 360) - 180 }

// shift rotates the hues that are within about width degrees of a hue, and multiplies their chroma.
func shift(hue, width, degrees, chroma float64) Adjust {
	return func(c oklab.Color) oklab.Color {
		h := math.Atan2(c.B, c.A) * 180 / math.Pi
		d := turn(hue, h) / width
		k := math.Exp(-d * d)
		return oklab.FromHue(c.L, c.Chroma()*(1+(chroma-1)*k), h+degrees*k)
	}
}

func mono(c oklab.Color) oklab.Color { return oklab.Color{L: c.L} }

// colorStop is a gradient map's color at a given lightness.
type colorStop struct {
	at    float64
	color oklab.Color
}

func hex(v uint32) oklab.Color {
	return oklab.FromSRGB(float64(v>>16&0xff)/255, float64(v>>8&0xff)/255, float64(v&0xff)/255)
}

// gradientMap replaces colors with a gradient over lightness. share, from 0 to 1, is the fraction of the gradient in
// the mix.
func gradientMap(share float64, stops ...colorStop) Adjust {
	return func(c oklab.Color) oklab.Color {
		return c.Lerp(along(stops, c.L), share)
	}
}

func along(stops []colorStop, at float64) oklab.Color {
	for i := 1; i < len(stops); i++ {
		if at < stops[i].at {
			t := clamp((at - stops[i-1].at) / (stops[i].at - stops[i-1].at))
			return stops[i-1].color.Lerp(stops[i].color, t)
		}
	}
	return stops[len(stops)-1].color
}

// palette replaces each color with the nearest color in the list. weight is the weight of lightness relative to chroma.
func palette(weight float64, colors ...oklab.Color) Adjust {
	return func(c oklab.Color) oklab.Color {
		best, nearest := colors[0], math.Inf(1)
		for _, p := range colors {
			l, a, b := (c.L-p.L)*weight, c.A-p.A, c.B-p.B
			if d := l*l + a*a + b*b; d < nearest {
				best, nearest = p, d
			}
		}
		return best
	}
}

// levels quantizes lightness to n steps. softness is the fraction of a step that blends into the next.
func levels(n int, softness float64) Adjust {
	return func(c oklab.Color) oklab.Color {
		v := clamp(c.L) * float64(n)
		step := min(math.Floor(v), float64(n-1))
		blend := smoothstep(1-softness, 1, v-step)
		// The lowest and highest steps become black and white.
		l := min((step+blend)/float64(n-1), 1)
		// Scale chroma with lightness, so that dark steps do not glow.
		if c.L > 0.01 {
			k := min(l/c.L, 1.3)
			c.A, c.B = c.A*k, c.B*k
		}
		c.L = l
		return c
	}
}

// clamp limits a value to 0 to 1. It returns 0 for NaN.
func clamp(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	if v > 1 {
		return 1
	}
	return v
}

// smoothstep rises smoothly from 0, where v is `zero`, to 1, where v is `one`. zero may be greater than one.
func smoothstep(zero, one, v float64) float64 {
	t := clamp((v - zero) / (one - zero))
	return t * t * (3 - 2*t)
}

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

// Variation returns the small change that a seed makes to every look: a tint in a random direction, and slightly
// different light and contrast.
func Variation(seed uint32) *LUT {
	source := noise.NewSource(uint64(seed), 100)
	return NewLUT(tint(source.Float()*360, 0.016), light(source.Between(-0.012, 0.012)),
		contrast(source.Between(0.97, 1.04), 0.5))
}

// enhance returns corrections that suit any picture, as a careful editor makes them.
func enhance() []Op {
	return []Op{
		Clarity{0.06, 0.3},
		Clarity{0.004, 0.4},
		grade(contrast(1.24, 0.5), light(0.03), vibrance(1.35), splitTone(240, 0.01, 80, 0.006)),
	}
}

// Reference returns the look for a request with a reference image but no words. It turns the picture into a painting,
// and the engine applies the image's colors.
func Reference(seed uint32) Look {
	touch := &brush{bristle: 0.0035, length: 0.03, swirl: 1.1}
	return Look{Seed: seed, Ops: []Op{
		touch.dragged(0.008),
		Flatten{0.006}, Clarity{0.03, 0.5}, Grade{Variation(seed)},
		add(touch.ridges(0.14)),
	}}
}
