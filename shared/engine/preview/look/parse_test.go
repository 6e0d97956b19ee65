package look

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/testkit/pixeltest"
)

// Phrases are unique, and names of looks are recognized.
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
	}
	for name, phrases := range phrasesIn(phrasesFile) {
		for _, phrase := range phrases {
			claim(phrase, strings.TrimSuffix(name, "?"))
		}
	}
}

func TestForeignNamesSelectLooks(t *testing.T) {
	names := phrasesIn(namesFile)
	for name := range names {
		change := slices.ContainsFunc(Changes(), func(words []string) bool { return words[0] == name })
		if !slices.Contains(Names(), name) && !change {
			t.Errorf("%q is neither a look nor a change", name)
		}
	}
	all := Names()
	for _, words := range Changes() {
		all = append(all, words[0])
	}
	for _, name := range all {
		color := slices.ContainsFunc(modifiers(), func(m modifier) bool { return m.name == name && m.isColor() })
		if len(names[name]) == 0 && !color && name != "soft" && name != "enhanced" {
			t.Errorf("%s has no name in other languages", name)
		}
		for _, phrase := range names[name] {
			found := func(prompt string) bool {
				read := Read(prompt, nil)
				return len(read.Understood) == 1 && strings.HasPrefix(read.Understood[0], name) || len(read.Edits) == 1 && read.Edits[0].Name() == name ||
					name == Ground && slices.Equal(read.Areas, []string{"blur (background)"}) || len(read.Areas) == 1 && (name == blurred || name == personColor)
			}
			completions := []string{"", " 3 s", " blurred", ` "Hi"`, " 1 s to 2 s", " 500 px", " 9:16"}
			if !slices.ContainsFunc(completions, func(rest string) bool { return found(phrase + rest) }) {
				t.Errorf("%q does not ask for %s: %+v", phrase, name, Read(phrase, nil))
			}
		}
	}
}

// Each word without a meaning is reported, or is part of a text, a scene or a reason.
func TestNoWordIsDropped(t *testing.T) {
	table, err := os.ReadFile("../understanding/testdata/prompts.txt")
	pixeltest.Require(t, err)
	for line := range strings.Lines(string(table)) {
		fields := strings.Split(line, " | ")
		if fields[0] != "edit" && fields[0] != "image" {
			continue
		}
		read := Read(fields[1], nil)
		told := strings.Join(read.Ignored, " ")
		for _, e := range read.Edits {
			told += " " + e.Text() + " " + e.Scene()
		}
		all := parts(fields[1], nil)
		plain(all)
		for _, p := range all {
			listed := slices.ContainsFunc(slices.Collect(maps.Values(lists())), func(list map[string]bool) bool { return list[p.first.text] })
			if word := fields[1][p.first.from:p.last.to]; p.class == content && !listed && len(p.arguments) == 0 && !strings.Contains(told, word) {
				t.Errorf("%q in %q is dropped", word, fields[1])
			}
		}
	}
}

// No prompt breaks Read, numbers are finite, and the parts that Read reports as ignored occur in the prompt.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "don't", "a red, leather jacket", "水彩画風にして", "اجعله لوحة زيتية", "no no no", "remove\x00\xff the snow", "as as of of",
		"freeze at nanx05 for 1 s", "first infx05",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		plain := string([]rune(strings.Join(strings.Fields(prompt), " "))) // a long part has no invalid bytes
		r := Read(prompt, nil)
		for _, e := range r.Edits {
			if e.Text() == "" && (strings.Contains(e.Label(), "NaN") || strings.Contains(e.Label(), "Inf")) {
				t.Errorf("%q requests %q", prompt, e.Label())
			}
		}
		for _, part := range r.Ignored {
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
	shapes := []string{"🔥", "b🔥", "画", "«a", `"a `, "write ", "3 s ", "rotate 90 ", "trim 1:1 ", "bg ", "flip it ", "contrast ",
		"not enough light "}
	for _, shape := range shapes {
		less, more := used(strings.Repeat(shape, maxWords/4)), used(strings.Repeat(shape, maxWords/2))
		if more > 4*less { // four times would be quadratic
			t.Errorf("%q: %.0f bytes for %d, %.0f for %d", shape, less, maxWords/4, more, maxWords/2)
		}
	}
	if found := tokenize(strings.Repeat("bg ", 2*maxSentence)); found[maxSentence].sentence == found[0].sentence {
		t.Errorf("a sentence has more than %d words", maxSentence)
	}
	if got := Read(strings.Repeat("so ", maxWords)+"brighter, please", nil); !slices.Equal(got.Ignored, []string{"brighter, please"}) {
		t.Errorf("of too many words, %q are ignored", got.Ignored)
	}
}
