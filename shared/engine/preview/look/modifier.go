package look

import "sync"

// modifier is a phrase that changes a picture slightly, on top of its look.
type modifier struct {
	phrases []string
	ops     func() []Op
}

func (m *modifier) isColor() bool { return colors()[m.phrases[0]] }

var colors = sync.OnceValue(func() map[string]bool {
	return set("red orange yellow green teal blue purple pink brown white black gray")
})

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
		{[]string{"brighter", "brighten", "bright", "lighter", "airy", "overexposed",
			"more light", "increase the brightness", "increase brightness"}, by(light(0.12))},
		{[]string{"darker", "darken", "dark", "dim", "moody", "low key", "shadowy", "less bright",
			"reduce the brightness", "decrease the brightness", "reduce brightness"}, by(light(-0.13), contrast(1.06, 0.4))},
		{[]string{"warmer", "warm", "cozy", "cosy"}, by(warm(0.055), light(0.01))},
		{[]string{"colder", "cold", "cooler", "cool", "chilly"}, by(saturate(0.85), tint(232, 0.06))},
		{
			[]string{"vivid", "vibrant", "saturate", "colorful", "colourful", "saturated", "psychedelic", "rainbow",
				"more saturation", "increase the saturation", "increase saturation", "boost the colors", "more color", "more colorful"},
			by(saturate(1.75), contrast(1.08, 0.5)),
		},
		{[]string{"muted", "desaturate", "desaturated", "dull", "faded", "washed out", "bleached",
			"less saturation", "reduce the saturation", "less saturated", "less color"}, by(saturate(0.4), fade(0.14, 0.95))},
		{[]string{"contrast", "more contrast", "contrasty", "high contrast", "punchy", "bold", "hdr",
			"increase the contrast", "increase contrast"}, func() []Op {
			return []Op{Clarity{0.05, 0.7}, grade(contrast(1.4, 0.5), saturate(1.15))}
		}},
		{[]string{"low contrast", "less contrast", "flat", "matte", "reduce the contrast",
			"reduce contrast"}, by(contrast(0.6, 0.55), fade(0.1, 0.95))},
		{[]string{"blur", "blurred", "blurry", "blurrier", "out of focus", "unsharp"}, func() []Op { return []Op{Blur{0.012}} }},
		{[]string{"soft", "softer", "smooth", "smoother", "glow", "glowing", "hazier"}, func() []Op {
			return []Op{Smooth{0.014, 0.10}, grade(fade(0.06, 1), light(0.03)), Bloom{0.05, 0.45, 0.8}}
		}},
		{[]string{"sharp", "sharper", "sharpen", "crisp", "clear"}, func() []Op {
			return []Op{Clarity{0.006, 1.1}, Clarity{0.04, 0.5}, grade(contrast(1.12, 0.5))}
		}},
		{
			[]string{"grayscale", "greyscale", "black and white", "black white", "b w", "monochrome"},
			by(saturate(0), contrast(1.08, 0.5)),
		},
		{[]string{"grainy", "grain", "film grain", "gritty", "noisy"}, func() []Op {
			return []Op{add(grain(0.045, 0.0018)).jumping(24)}
		}},
		{[]string{"vignette", "vignetting"}, func() []Op { return []Op{multiply(vignette(0.5, 0.4))} }},
		{[]string{"invert", "inverse", "invert colors"}, func() []Op {
			return []Op{Grade{LUTOf(func(r, g, b float64) (float64, float64, float64) { return 1 - r, 1 - g, 1 - b })}}
		}},
		{[]string{"red", "crimson", "scarlet", "ruby"}, color(27, 0.15, -0.02)},
		{[]string{"orange", "amber", "tangerine"}, color(55, 0.13, 0.01)},
		{[]string{"yellow", "lemon"}, color(102, 0.125, 0.05)},
		{[]string{"green", "emerald", "lime", "olive"}, color(145, 0.13, 0)},
		{[]string{"teal", "turquoise", "cyan", "aqua"}, color(195, 0.105, 0)},
		{[]string{"blue", "azure", "navy", "indigo", "cobalt"}, color(258, 0.135, -0.02)},
		{[]string{"purple", "violet", "lavender", "lilac"}, color(305, 0.13, -0.01)},
		{[]string{"pink", "magenta", "rose", "fuchsia"}, color(352, 0.125, 0.02)},
		{[]string{"brown", "chocolate", "coffee"}, color(58, 0.065, -0.06)},
		{[]string{"white"}, by(saturate(0.3), light(0.17), contrast(0.85, 0.75))},
		{[]string{"black"}, by(saturate(0.4), light(-0.2), contrast(1.15, 0.4))},
		{[]string{"gray", "grey", "silver"}, by(saturate(0.08), contrast(1.1, 0.5))},
	}
}
