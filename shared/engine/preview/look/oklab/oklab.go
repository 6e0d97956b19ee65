// Package oklab converts between sRGB and Oklab, a color space in which equal steps look about equally large
// (Björn Ottosson, "A perceptual color space for image processing", 2020). L is lightness from 0 to 1. A goes
// from green to red and B from blue to yellow, both from about -0.3 to 0.3.
package oklab

import "math"

type Color struct{ L, A, B float64 }

// FromSRGB converts encoded sRGB with channels from 0 to 1.
func FromSRGB(r, g, b float64) Color { return FromLinear(decode(r), decode(g), decode(b)) }

// Light decodes an sRGB channel to linear light, for [FromLinear].
func Light(v float64) float64 { return decode(v) }

// SRGB converts to encoded sRGB. Colors that a screen cannot show have channels below 0 or above 1.
func (c Color) SRGB() (r, g, b float64) {
	r, g, b = c.Linear()
	return encode(r), encode(g), encode(b)
}

// FromLinear converts linear light with the sRGB primaries.
func FromLinear(r, g, b float64) Color {
	l := math.Cbrt(0.4122214708*r + 0.5363325363*g + 0.0514459929*b)
	m := math.Cbrt(0.2119034982*r + 0.6806995451*g + 0.1073969566*b)
	s := math.Cbrt(0.0883024619*r + 0.2817188376*g + 0.6299787005*b)
	return Color{
		L: 0.2104542553*l + 0.7936177850*m - 0.0040720468*s,
		A: 1.9779984951*l - 2.4285922050*m + 0.4505937099*s,
		B: 0.0259040371*l + 0.7827717662*m - 0.8086757660*s,
	}
}

func (c Color) Linear() (r, g, b float64) {
	l := c.L + 0.3963377774*c.A + 0.2158037573*c.B
	m := c.L - 0.1055613458*c.A - 0.0638541728*c.B
	s := c.L - 0.0894841775*c.A - 1.2914855480*c.B
	l, m, s = l*l*l, m*m*m, s*s*s
	return 4.0767416621*l - 3.3077115913*m + 0.2309699292*s,
		-1.2684380046*l + 2.6097574011*m - 0.3413193965*s,
		-0.0041960863*l - 0.7034186147*m + 1.7076147010*s
}

// Chroma returns a color's distance from gray.
func (c Color) Chroma() float64 { return math.Hypot(c.A, c.B) }

// FromHue returns a color from its lightness, chroma and hue in degrees (about 30 red, 70 orange,
// 110 yellow, 145 green, 195 cyan, 260 blue, 305 violet, 350 pink).
func FromHue(lightness, chroma, hue float64) Color {
	sin, cos := math.Sincos(hue * math.Pi / 180)
	return Color{lightness, chroma * cos, chroma * sin}
}

// Lerp interpolates linearly. The result is c if t is 0, and other if t is 1.
func (c Color) Lerp(other Color, t float64) Color {
	return Color{c.L + (other.L-c.L)*t, c.A + (other.A-c.A)*t, c.B + (other.B-c.B)*t}
}

func decode(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

func encode(v float64) float64 {
	if v <= 0.0031308 {
		return v * 12.92
	}
	// the fourth root of cbrt(v)^5 is v^(1/2.4), in a third of the time
	root := math.Cbrt(v)
	return 1.055*root*math.Sqrt(math.Sqrt(root)) - 0.055
}
