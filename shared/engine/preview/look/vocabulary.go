package look

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

// namesFile has the names of looks in languages other than English.
//
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
}

func (m meaning) name() string {
	switch {
	case m.look != nil:
		return m.look.name
	case m.edit != nil:
		return m.edit.name
	}
	return m.modifier.phrases[0]
}

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
	foreign := foreignNames()
	for _, e := range lexicon() {
		v.learn(e.phrases, meaning{look: &e})
		v.learn(e.generic, meaning{look: &e, generic: true})
		v.learn(foreign[e.name], meaning{look: &e})
	}
	for _, m := range modifiers() {
		v.learn(m.phrases, meaning{modifier: &m})
		v.learn(foreign[m.phrases[0]], meaning{modifier: &m})
	}
	for rank, o := range operations() {
		o.rank = rank
		v.learn(append(o.phrases, o.name), meaning{edit: &o})
		v.learn(foreign[o.name], meaning{edit: &o})
	}
	v.known = set(friendsFile)
	for word := range units() {
		v.known[word] = true
	}
	for word := range directions() {
		v.known[word] = true
	}
	for word := range degrees() {
		v.known[word] = true
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

// foreignNames returns the phrases in namesFile, keyed by look name.
func foreignNames() map[string][]string {
	names := map[string][]string{}
	for line := range strings.Lines(namesFile) {
		line = strings.TrimSpace(line)
		if name, phrases, found := strings.Cut(line, ": "); found && !strings.HasPrefix(line, "#") {
			names[name] = strings.Split(phrases, ", ")
		}
	}
	return names
}
