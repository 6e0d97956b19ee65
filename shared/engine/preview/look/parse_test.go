package look

import (
	"slices"
	"strings"
	"testing"
)

func TestParseFindsLooks(t *testing.T) {
	for prompt, want := range map[string]string{
		"watercolor":                        "watercolor",
		"A Watercolour painting of the sea": "watercolor",
		"make it look like an oil painting": "oil painting",
		"a painting":                        "oil painting",
		"in the style of Van Gogh":          "impressionist",
		"turn this into a pencil drawing!":  "pencil sketch",
		"sketches":                          "pencil sketch",
		"Studio Ghibli style":               "anime",
		"black and white":                   "film noir",
		"film noir, 1940s detective":        "film noir",
		"an old film":                       "vintage film",
		"8-bit video game":                  "pixel art",
		"made of LEGO bricks":               "toy bricks",
		"stained glass window":              "stained glass",
		"a snowy night":                     "winter, night",
		"watercolor of a snowy night":       "winter, night, watercolor",
		"pixel art watercolor":              "pixel art",
		"watercolor pixel art":              "watercolor",
		"winter, night, rain and fog":       "winter, night",
		"a movie":                           "cinematic",
		"a noir movie":                      "film noir",
		"Blade Runner":                      "cyberpunk neon",
		"heat map":                          "thermal",
		"night vision":                      "night vision",
		"at night":                          "night",
		"under water":                       "underwater",
		"a VHS tape from the 90s":           "vhs",
		"without snow":                      "",
		"no rain, golden hour":              "golden hour",
		"a castle in the clouds":            "",
		"":                                  "",
		"?!":                                "",
		"make it brighter":                  "",
		strings.Repeat("watercolor ", 400):  "watercolor",
		"change the man's jacket to a red leather jacket": "",
	} {
		if got := strings.Join(Parse(prompt, 1).Names, ", "); got != want {
			t.Errorf("%.60q asks for %q, want %q", prompt, got, want)
		}
	}
}

// TestParseIsOneLook checks that prompts with the same meaning lead to the same
// operations.
func TestParseIsOneLook(t *testing.T) {
	for _, same := range [][]string{
		{"watercolor", "Watercolour!", "make it a watercolor", "turn this video into watercolors"},
		{"a castle in the clouds", "castle, clouds", "Castles & Clouds"},
		{"", "  ", "\t"},
	} {
		first := Parse(same[0], 9)
		for _, other := range same[1:] {
			if !equal(first, Parse(other, 9)) {
				t.Errorf("%q and %q give different looks", same[0], other)
			}
		}
	}
	if equal(Parse("watercolor", 1), Parse("watercolor", 2)) {
		t.Error("two seeds give one look")
	}
	if equal(Parse("a castle", 1), Parse("a dragon", 1)) {
		t.Error("two texts give one look")
	}
}

// equal compares looks by their tables and the textures that they draw.
func equal(a, b Look) bool {
	if len(a.Ops) != len(b.Ops) {
		return false
	}
	for i := range a.Ops {
		switch x := a.Ops[i].(type) {
		case Grade:
			y, ok := b.Ops[i].(Grade)
			if !ok || !slices.Equal(x.LUT.values, y.LUT.values) {
				return false
			}
		case Layer:
			y, ok := b.Ops[i].(Layer)
			if !ok || !slices.Equal(bytesOf(x.Draw(64, 36, a.Seed)), bytesOf(y.Draw(64, 36, b.Seed))) {
				return false
			}
		}
	}
	return true
}

// TestEveryLookIsWellFormed goes through the lexicon: its phrases are unique and
// found, lengths are of a useful size, and no look is without a table of
// colours that the seed can vary.
func TestEveryLookIsWellFormed(t *testing.T) {
	owner := map[string]string{}
	claim := func(phrase, name string) {
		key := strings.Join(words(phrase), " ")
		if key == "" {
			t.Errorf("%s: the phrase %q has no words", name, phrase)
		}
		if other, taken := owner[key]; taken && other != name {
			t.Errorf("%q asks for both %s and %s", phrase, other, name)
		}
		owner[key] = name
	}
	for _, e := range lexicon() {
		if got := Parse(e.name, 1).Names; !slices.Equal(got, []string{e.name}) {
			t.Errorf("the name %q asks for %q", e.name, got)
		}
		for _, phrase := range e.phrases {
			claim(phrase, e.name)
		}
		for _, phrase := range e.generic {
			claim(phrase, e.name)
		}
		tables := 0
		for _, op := range made()[e.name] {
			length := 0.01
			switch op := op.(type) {
			case Smooth:
				length = op.Radius
			case Flatten:
				length = op.Radius
			case Pixelate:
				length = op.Block
			case Clarity:
				length = op.Radius
			case Lines:
				length = op.Width
				if op.From >= op.To {
					t.Errorf("%s: lines from %g to %g", e.name, op.From, op.To)
				}
				if op.Fill != nil {
					tables++
				}
			case Bloom:
				length = op.Radius
				if op.Threshold < 0 || op.Threshold >= 1 {
					t.Errorf("%s: bloom from %g", e.name, op.Threshold)
				}
			case Fringe:
				length = op.Shift
			case Warp:
				length = op.Reach
			case Grade:
				tables++
			}
			if length < 0.002 || length > 0.15 {
				t.Errorf("%s: %T of %g units", e.name, op, length)
			}
		}
		if tables == 0 {
			t.Errorf("%s has no table of colours", e.name)
		}
	}
	for _, m := range modifiers() {
		for _, phrase := range m.phrases {
			claim(phrase, "a modifier")
		}
	}
	if names := Names(); len(names) < 16 {
		t.Errorf("%d looks, want at least 16", len(names))
	}
}

// TestTextsSpread checks the looks of words that no lexicon knows: of many
// texts hardly any two are alike.
func TestTextsSpread(t *testing.T) {
	colors := [][3]float64{
		{0.2, 0.3, 0.5}, {0.5, 0.4, 0.3}, {0.8, 0.7, 0.6}, {0.1, 0.1, 0.1}, {0.9, 0.9, 0.95}, {0.6, 0.2, 0.2},
		{0.3, 0.5, 0.2},
	}
	var looks [][]float64
	for _, subject := range strings.Fields(
		"castle dragon robot piano kitchen violin garden elephant bridge teapot mirror lantern " +
			"submarine guitar library wizard tractor orchid compass chess falcon saddle window pepper") {
		var points []float64
		for _, op := range Parse(subject, 1).Ops {
			if g, ok := op.(Grade); ok {
				for _, c := range colors {
					r, g, b := g.LUT.At(c[0], c[1], c[2])
					points = append(points, 255*r, 255*g, 255*b)
				}
				break
			}
		}
		looks = append(looks, points)
	}
	alike := 0
	for i := range looks {
		for j := range i {
			sum := 0.0
			for k := range looks[i] {
				sum += max(looks[i][k]-looks[j][k], looks[j][k]-looks[i][k])
			}
			if sum/float64(len(looks[i])) < 8 {
				alike++
			}
		}
	}
	if pairs := len(looks) * (len(looks) - 1) / 2; alike*50 > pairs {
		t.Errorf("%d of %d pairs of texts are alike", alike, pairs)
	}
}
