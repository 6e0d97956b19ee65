package look

import (
	"math"
	"strings"
	"sync"

	"cutroom/shared/engine/preview/look/oklab"
)

// modifier is a word that changes a picture slightly, on top of its look.
type modifier struct {
	name string
	ops  func() []Op
}

func (m *modifier) isColor() bool { return colors()[m.name] }

var colors = sync.OnceValue(func() map[string]bool {
	return set("red orange yellow green teal blue purple pink brown white black gray")
})

// hues has the hues of colors, in degrees.
var hues = map[string]float64{
	"red": 26, "orange": 58, "yellow": 98, "green": 142, "teal": 195, "blue": 258, "purple": 308, "pink": 355,
}

// keeping returns the change to black and white that keeps some colors.
func keeping(names []string) *modifier {
	keep := func(c oklab.Color) oklab.Color {
		hue, share := math.Atan2(c.B, c.A)*180/math.Pi, 0.0
		for _, name := range names {
			share = max(share, smoothstep(36, 24, math.Abs(turn(hues[name], hue))))
		}
		return oklab.FromHue(c.L, c.Chroma()*share*smoothstep(0.02, 0.05, c.Chroma()), hue)
	}
	return &modifier{"grayscale except " + strings.Join(names, " and "), func() []Op { return []Op{grade(keep)} }}
}

// modifiers returns the words for degrees, such as "brighter", and the color names.
func modifiers() []modifier {
	by := func(adjustments ...Adjust) func() []Op {
		return func() []Op { return []Op{grade(adjustments...)} }
	}
	color := func(hue, chroma, lift float64) func() []Op {
		// Keep about a third of the saturation, so that objects stay distinguishable. Only the
		// black-and-white modifiers remove it all.
		return by(saturate(0.35), tint(hue, chroma), light(lift))
	}
	return []modifier{
		{"brighter", by(light(0.12))}, {"darker", by(light(-0.13), contrast(1.06, 0.4))},
		{"warmer", by(warm(0.055), light(0.01))}, {"colder", by(saturate(0.85), tint(232, 0.06))},
		{"vivid", by(vibrance(2.1), contrast(1.05, 0.5))}, {"muted", by(saturate(0.4), fade(0.14, 0.95))},
		{"contrast", func() []Op { return []Op{Clarity{0.05, 0.7}, grade(contrast(1.4, 0.5), saturate(1.15))} }},
		{"low contrast", by(contrast(0.6, 0.55), fade(0.1, 0.95))},
		{"blur", func() []Op { return []Op{Blur{0.012}} }},
		{"soft", func() []Op {
			return []Op{Smooth{0.014, 0.10}, grade(fade(0.06, 1), light(0.03)), Bloom{0.05, 0.45, 0.8}}
		}},
		{"sharp", func() []Op { return []Op{Clarity{0.005, 0.8}, Clarity{0.03, 0.15}} }},
		{"grayscale", by(saturate(0), contrast(1.08, 0.5))},
		{"grainy", func() []Op { return []Op{add(grain(0.045, 0.0018)).jumping(24)} }},
		{"vignette", func() []Op { return []Op{multiply(vignette(0.5, 0.4))} }},
		{"invert", func() []Op { return []Op{Grade{Negative()}} }},
		{"red", color(27, 0.15, -0.02)}, {"orange", color(55, 0.13, 0.01)}, {"yellow", color(102, 0.125, 0.05)},
		{"green", color(145, 0.13, 0)}, {"teal", color(195, 0.105, 0)}, {"blue", color(258, 0.135, -0.02)},
		{"purple", color(305, 0.13, -0.01)}, {"pink", color(352, 0.125, 0.02)}, {"brown", color(58, 0.065, -0.06)},
		{"white", by(saturate(0.3), light(0.17), contrast(0.85, 0.75))},
		{"black", by(saturate(0.4), light(-0.2), contrast(1.15, 0.4))},
		{"less red", by(shift(26, 50, 0, 0.6))}, {"less green", by(shift(142, 50, 0, 0.6))},
		{"gray", by(saturate(0.08), contrast(1.1, 0.5))},
	}
}

// stronger multiplies the effect of operations by a factor.
func stronger(ops []Op, by float64) []Op {
	if by == 1 {
		return ops
	}
	scaled := make([]Op, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case Grade:
			lut := op.LUT
			scaled[i] = Grade{LUTOf(func(r, g, b float64) (float64, float64, float64) {
				red, green, blue := lut.At(r, g, b)
				return r + (red-r)*by, g + (green-g)*by, b + (blue-b)*by
			})}
		case Smooth:
			scaled[i] = Smooth{op.Radius * by, op.Range}
		case Clarity:
			scaled[i] = Clarity{op.Radius, op.Amount * by}
		case Bloom:
			scaled[i] = Bloom{op.Radius, op.Threshold, op.Amount * by}
		case Blur:
			scaled[i] = Blur{op.Radius * by}
		case Layer:
			neutral := map[Mode]float32{Multiply: 1, Screen: 0, Add: 0.5}[op.Mode]
			texture := op.Texture
			op.Texture = func(s *Sheet) {
				texture(s)
				for i, v := range s.Values {
					s.Values[i] = min(max(neutral+(v-neutral)*float32(by), 0), 1)
				}
			}
			scaled[i] = op
		default:
			scaled[i] = op
		}
	}
	return scaled
}
