package look

import (
	"math"

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
