package look

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestLooksAreFoundDespiteTypos(t *testing.T) {
	for prompt, want := range map[string]string{
		"watercolor": "watercolor", "A Watercolour painting of the sea": "watercolor",
		"make it look like an oil painting": "oil painting", "a painting": "oil painting",
		"turn this into a pencil drawing!": "pencil sketch", "sketches": "pencil sketch",
		"Studio Ghibli style": "anime", "film noir, 1940s detective": "film noir", "an old film": "old movie",
		"8-bit video game": "pixel art", "made of LEGO bricks": "toy bricks", "stained glass window": "stained glass",
		"a snowy night": "winter, night", "watercolor of a snowy night": "winter, night, watercolor",
		"pixel art watercolor": "pixel art", "watercolor pixel art": "watercolor",
		"winter, night, rain and fog": "winter, night", "a movie": "cinematic", "a noir movie": "film noir",
		"Blade Runner": "cyberpunk neon", "heat map": "thermal", "night vision": "night vision", "at night": "night",
		"under water": "underwater", "a VHS tape from the 90s": "vhs", "?!": "",
		strings.Repeat("watercolor ", 400): "watercolor", "enhance it": "enhanced",
		"waterclor": "watercolor", "watercolur painting": "watercolor", "aquarrelle": "watercolor",
		"cyberpnuk": "cyberpunk neon", "penicl sketch": "pencil sketch", "vintge film": "vintage film",
		"anmie": "anime", "impresionist": "impressionist", "moziac": "", "mosiac": "pixel art", "stianed glass": "stained glass",
		"pixl art": "pixel art", "underwatr": "underwater", "акварелъ": "watercolor", "acurela": "watercolor", "snw": "",
	} {
		if got := strings.Join(Parse(prompt, 1).Names, ", "); got != want {
			t.Errorf("%.60q asks for %q, want %q", prompt, got, want)
		}
	}
}

func TestEquivalentPromptsGiveSameLook(t *testing.T) {
	for _, same := range [][]string{
		{"watercolor", "Watercolour!", "make it a watercolor", "turn this video into watercolors"},
		{"watercolor", "a watercolor of a castle in the clouds", "acuarela", "水彩画", "watercolr"},
		{"a castle in the clouds", "", "  ", "\t", "don't make it green"},
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
	if asked := Parse("a castle", 1); len(asked.Ops) > 0 {
		t.Errorf("a text that names no look changes the picture by %d operations", len(asked.Ops))
	}
}

// equal compares looks by their color tables and the textures that they draw.
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

// Phrases are unique and recognized, lengths are reasonable, and color tables vary with the seed.
func TestEveryLookIsWellFormed(t *testing.T) {
	owner := map[string]string{}
	claim := func(phrase, name string) {
		key := strings.Join(words(phrase), " ")
		if key == "" {
			t.Errorf("%s: the phrase %q has no words", name, phrase)
		}
		if other, taken := owner[key]; taken && other != name {
			t.Errorf("%q requests both %s and %s", phrase, other, name)
		}
		owner[key] = name
	}
	for _, e := range lexicon() {
		if got := Read(e.name, nil).Understood; !slices.Equal(got, []string{e.name}) {
			t.Errorf("the name %q asks for %q", e.name, got)
		}
		for _, phrase := range slices.Concat(phrasesIn(phrasesFile)[e.name], phrasesIn(phrasesFile)[e.name+"?"]) {
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
			t.Errorf("%s has no table of colors", e.name)
		}
	}
	for _, m := range modifiers() {
		for _, phrase := range phrasesIn(phrasesFile)[m.name] {
			claim(phrase, "a modifier")
		}
	}
	if names := Names(); len(names) < 16 {
		t.Errorf("%d looks, want at least 16", len(names))
	}
}

func isShort(name string) bool { return name == blurred || name == personColor }

func TestForeignNamesSelectLooks(t *testing.T) {
	names := phrasesIn(namesFile)
	for name := range names {
		change := slices.ContainsFunc(Changes(), func(words []string) bool { return words[0] == name })
		if !slices.Contains(Names(), name) && !change {
			t.Errorf("%q is neither a look nor a change", name)
		}
	}
	for _, words := range Changes() {
		name := words[0]
		color := slices.ContainsFunc(modifiers(), func(m modifier) bool { return m.name == name && m.isColor() })
		if len(names[name]) == 0 && !color && name != "soft" {
			t.Errorf("%s has no name in other languages", name)
		}
		for _, phrase := range names[name] {
			found := func(prompt string) bool {
				read := Read(prompt, nil)
				return slices.Equal(read.Understood, []string{name}) || len(read.Edits) == 1 && read.Edits[0].Name() == name ||
					name == Ground && slices.Equal(read.Areas, []string{"blur (background)"}) || len(read.Areas) == 1 && isShort(name)
			}
			if !found(phrase) && !found(phrase+" 3 s") && !found(phrase+" blurred") && !found(phrase+` "Hi"`) {
				t.Errorf("%q does not ask for %s: %+v", phrase, name, Read(phrase, nil))
			}
		}
	}
	for _, e := range lexicon() {
		if len(names[e.name]) == 0 && e.name != "enhanced" {
			t.Errorf("%s has no name in other languages", e.name)
		}
		for _, phrase := range names[e.name] {
			// Read also builds the look's tables.
			if got := Read(phrase, nil).Understood; !slices.Equal(got, []string{e.name}) {
				t.Errorf("%q asks for %q, want %s", phrase, got, e.name)
			}
		}
	}
}

func TestPlainWordsKeepTheirMeaning(t *testing.T) {
	for prompt, want := range map[string]string{
		"black and white": "grayscale", "b&w": "grayscale", "schwarz-weiß": "grayscale", "黑白": "grayscale",
		"black and white film noir": "film noir, grayscale", "dibujos animados": "comic", "1980s": "vaporwave",
		"grainy film": "cinematic, grainy", "🌊": "underwater", "watercolor ❤️👍🏽": "watercolor", "vignette": "vignette",
		"sharpen": "sharp", "desaturate": "muted", "more contrast": "contrast",
	} {
		read := Read(prompt, nil)
		if got := strings.Join(read.Understood, ", "); got != want || len(read.Ignored) > 0 {
			t.Errorf("%q asks for %q and %q is ignored, want %q", prompt, got, read.Ignored, want)
		}
	}
}

// Common words that resemble a look's words are not mistaken for the look.
func TestCommonWordsAreNotTypos(t *testing.T) {
	for word := range strings.FieldsSeq(`dessert winner mango cosmic carton shark share clean while block crown violent
		village story store printing pointing panting string strong animal mirror froggy musty dusty pixie trick brisk
		porter stretch water waterfall watermelon walker hunter founder painter drawer fold gild goal night-gown might
		light blond blind board boat bread dream-catcher green-house greet queen people fellow mellow meadow shadow window
		film-maker fine find line lime-stone mine nine comma common column tile-fish title angle angel crystal-clear
		grape graph grass glass-blower class glance france dance fence pencils-case stencil fossil hassle castle battle`) {
		if got := Read(word, nil).Understood; len(got) > 0 && !strings.Contains(word, "-") {
			t.Errorf("the common word %q is taken for %q", word, got)
		}
	}
}

// No prompt breaks Read, and the parts that it reports as ignored occur in the prompt.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "don't", "a red, leather jacket", "水彩画風にして", "اجعله لوحة زيتية", "no no no", "remove\x00\xff the snow", "as as of of",
		"in the style of", "add", "make", "and and", "no estilo", "'’", "é́́́", "…,,,;;",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		plain := string([]rune(strings.Join(strings.Fields(prompt), " "))) // a long part has no invalid bytes
		for _, part := range Read(prompt, nil).Ignored {
			if part = string([]rune(strings.TrimSuffix(part, "…"))); part == "" || !strings.Contains(plain, part) {
				t.Errorf("%q is not in %q", part, prompt)
			}
		}
	})
}

// Reading takes memory in proportion to the prompt's length, whatever its characters are.
func TestParsingTimeIsLinear(t *testing.T) {
	used := func(prompt string) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Read("background "+prompt+" beach", nil)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	used("a")
	for _, shape := range []string{"🔥", "b🔥", "画", "«a", `"a `, "write ", "3 s ", "rotate 90 ", "trim 1:1 "} {
		less, more := used(strings.Repeat(shape, 1000)), used(strings.Repeat(shape, 4000))
		if more > 6*less {
			t.Errorf("%q: %.0f bytes for 1,000, %.0f for 4,000", shape, less, more)
		}
	}
}
