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

// friendsFile has the words that are spelled like one of the vocabulary and mean
// something else, such as "dessert"; see typo.go.
//
//go:embed friends.txt
var friendsFile string

// meaning is the meaning of a phrase: a look, or else a modifier.
type meaning struct {
	phrase   []string
	look     *entry
	generic  bool
	modifier *modifier
}

func (m meaning) name() string {
	if m.look != nil {
		return m.look.name
	}
	return m.modifier.phrases[0]
}

// vocabulary is every phrase that prompts may use.
type vocabulary struct {
	// meanings are by the first word of their phrases.
	meanings map[string][]meaning
	// words are the words of all phrases, known these and all correct words with a similar spelling:
	// only other words can be misspelled.
	words, known map[string]bool
	// long are the words that may be recognized in a misspelled one, by their first letter.
	long map[rune][]string
	// owners are the looks and modifiers that have a word in one of their phrases.
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
	}
	v.known = set(friendsFile)
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
		m.phrase = words(phrase)
		v.meanings[m.phrase[0]] = append(v.meanings[m.phrase[0]], m)
		for _, word := range m.phrase {
			v.words[word] = true
			v.owners[word] = append(v.owners[word], m.name())
		}
	}
}

// foreignNames returns the phrases of namesFile by the look's name.
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
