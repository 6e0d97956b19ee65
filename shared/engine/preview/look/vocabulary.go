package look

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// phrasesFile has the English phrases for looks, changes and edits; namesFile has them in other languages.
//
//go:embed phrases.txt
var phrasesFile string

//go:embed names.txt
var namesFile string

// friendsFile lists words that are spelled like a word of the vocabulary but mean something else,
// such as "dessert"; see typo.go.
//
//go:embed friends.txt
var friendsFile string

// A phrase means a look, a modifier or an ordinary edit.
type meaning struct {
	phrase   []string
	look     *entry
	generic  bool
	modifier *modifier
	edit     *operation
	// moot means that the phrase asks for nothing that must be done.
	moot bool
}

func (m meaning) name() string {
	switch {
	case m.look != nil:
		return m.look.name
	case m.edit != nil:
		return m.edit.name
	case m.modifier != nil:
		return m.modifier.name
	}
	return ""
}

// inert reports whether a meaning is a phrase that names no edit, such as "comic sans".
func (m meaning) inert() bool { return m.look == nil && m.edit == nil && m.modifier == nil }

// vocabulary contains every phrase that a prompt may use.
type vocabulary struct {
	// meanings is keyed by a phrase's first word.
	meanings map[string][]meaning
	// words contains the words of all phrases. known also contains correct words that look similar. A word in known
	// is never treated as misspelled.
	words, known map[string]bool
	// long maps first letters to the words that may be recognized when misspelled.
	long map[rune][]string
	// owners maps each word to the looks and modifiers whose phrases contain it.
	owners map[string][]string
}

var learned = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{meanings: map[string][]meaning{}, words: map[string]bool{}, long: map[rune][]string{},
		owners: map[string][]string{}}
	english, foreign := phrasesIn(phrasesFile), phrasesIn(namesFile)
	learn := func(name string, m meaning) {
		v.learn([]string{name}, m)
		v.learn(english[name], m)
		v.learn(foreign[name], m)
	}
	for _, e := range lexicon() {
		learn(e.name, meaning{look: &e})
		v.learn(english[e.name+"?"], meaning{look: &e, generic: true})
	}
	for _, m := range modifiers() {
		learn(m.name, meaning{modifier: &m})
	}
	for rank, o := range operations() {
		o.rank = rank
		learn(o.name, meaning{edit: &o})
	}
	v.learnQualities()
	v.learn(slices.Collect(maps.Keys(lists()["inert"])), meaning{})
	v.learn(slices.Collect(maps.Keys(lists()["stays"])), meaning{})
	v.learn(slices.Collect(maps.Keys(lists()["exceptions"])), meaning{})
	v.learn(slices.Collect(maps.Keys(lists()["moot"])), meaning{moot: true})
	for speed := range lists()["speeds"] {
		for normal := range lists()["normals"] {
			v.learn([]string{normal + " " + speed, speed + " " + normal}, meaning{moot: true})
		}
	}
	v.known = set(friendsFile)
	for list := range strings.FieldsSeq(`slightly strongly tracks sound degrees seconds times pixels starts ends left
		right top bottom center corner widths heights clockwise counterclockwise large huge small squares uprights
		wides halves quarters thirds`) {
		maps.Copy(v.known, lists()[list])
	}
	for word := range v.words {
		v.known[word] = true
		if utf8.RuneCountInString(word) >= minTypo {
			first, _ := utf8.DecodeRuneInString(word)
			v.long[first] = append(v.long[first], word)
		}
	}
	return v
})

// named returns the names of the meanings that a word has without other words.
func (v *vocabulary) named(word string) (names []string) {
	for _, m := range v.meanings[word] {
		if len(m.phrase) == 1 {
			names = append(names, m.name())
		}
	}
	return names
}

// qualities has, by the list of words for a quality, the changes that raise it and that lower it.
var qualities = map[string][2]string{
	"contrasts": {"contrast", "low contrast"}, "brightnesses": {"brighter", "darker"},
	"saturations": {"vivid", "muted"}, "sharpnesses": {"sharp", "soft"}, "warmths": {"warmer", "colder"},
	"volumes": {"louder", "quieter"}, "noises": {"grainy", "denoise"}, "speeds": {"faster", "slow motion"},
}

// learnQualities learns phrases such as "raise the contrast" and "コントラストを下げ".
func (v *vocabulary) learnQualities() {
	for list, names := range qualities {
		for i, verbs := range []string{"ups", "downs"} {
			known := v.meanings[words(names[i])[0]]
			m := known[slices.IndexFunc(known, func(m meaning) bool { return m.name() == names[i] })]
			for quality := range lists()[list] {
				v.learn([]string{quality}, meaning{}) // "对比度太高"
				for verb := range lists()[verbs] {
					v.learn([]string{verb + " " + quality, quality + " " + verb}, m)
				}
			}
		}
	}
}

func (v *vocabulary) learn(phrases []string, m meaning) {
	for _, phrase := range phrases {
		if plain := strings.ReplaceAll(phrase, " the ", " "); plain != phrase {
			v.learn([]string{plain}, m)
		}
		m.phrase = words(phrase)
		v.meanings[m.phrase[0]] = append(v.meanings[m.phrase[0]], m)
		for _, word := range m.phrase {
			v.words[word] = true
			v.owners[word] = append(v.owners[word], m.name())
		}
	}
}

// phrasesIn returns the phrases in a file, keyed by name.
func phrasesIn(file string) map[string][]string {
	names := map[string][]string{}
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		if name, phrases, found := strings.Cut(line, ": "); found && !strings.HasPrefix(line, "#") {
			for phrase := range strings.SplitSeq(phrases, ", ") {
				names[name] = append(names[name], filled(phrase, names)...)
			}
		}
	}
	maps.DeleteFunc(names, func(name string, _ []string) bool { return name[0] == '{' })
	return names
}

// filled returns the phrases of a pattern, such as "cut {it} to". The row "{it}" has the words.
func filled(pattern string, rows map[string][]string) (all []string) {
	start, end := strings.Index(pattern, "{"), strings.Index(pattern, "}")
	if start < 0 {
		return []string{pattern}
	}
	for _, word := range rows[pattern[start:end+1]] {
		all = append(all, filled(pattern[:start]+word+pattern[end+1:], rows)...)
	}
	return all
}
