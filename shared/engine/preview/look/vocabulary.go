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
	for list := range strings.FieldsSeq("inert stays remains exceptions excluders moot rests smalls") {
		v.learn(slices.Collect(maps.Keys(lists()[list])), meaning{moot: strings.Contains("moot rests smalls", list)})
	}
	for speed := range lists()["speeds"] {
		for normal := range lists()["normals"] {
			v.learn([]string{normal + " " + speed, speed + " " + normal}, meaning{moot: true})
		}
	}
	v.known = set(friendsFile)
	for list := range strings.FieldsSeq(`slightly strongly tracks sound degrees seconds times pixels starts ends left
		right top bottom center corner widths heights clockwise counterclockwise large huge small squares uprights
		wides halves quarters thirds highs lows`) {
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

const (
	// A word may have one wrong letter if it has at least minTypo code points, and two if it has at least minTypos.
	minTypo  = 5
	minTypos = 8
	// At most this many words of a prompt are checked for misspellings.
	maxMended = 100
)

// mend replaces misspelled words with words from the vocabulary, unless they have a meaning in the vocabulary or in
// English. It assumes that the first letter is correct.
func (v *vocabulary) mend(tokens []token) {
	mended := map[string]string{}
	for i, t := range tokens {
		if in("thes", t.text) {
			tokens[i].text = "the"
			continue
		}
		short := utf8.RuneCountInString(t.text) < minTypo-1
		if short || v.known[t.text] || isDigit(t.text, 0) || classOf(t.text) != content {
			continue
		}
		if rest, found := strings.CutPrefix(t.text, "و"); found && v.words[rest] { // "and" in Arabic
			tokens[i].text = rest
			continue
		}
		if stem, found := v.stem(t.text); found {
			tokens[i].text, tokens[i].whole = stem, true
			continue
		}
		if _, known := mended[t.text]; !known {
			if len(mended) == maxMended {
				return
			}
			mended[t.text] = t.text
			if word, found := v.nearest(t.text); found {
				mended[t.text] = word
			}
		}
		tokens[i].text = mended[t.text]
	}
}

// stem returns a Spanish or Italian verb without "it": "sube" for "súbele".
func (v *vocabulary) stem(text string) (verb string, found bool) {
	for _, it := range []string{"melo", "mela", "lo", "la", "le", "li"} {
		verb, found = strings.CutSuffix(text, it)
		acts := classOf(verb) >= placing || inAny(verb, "ups", "downs")
		plain := classOf(verb) == filler && !in("wholes", verb) || len(v.named(verb)) > 0
		if found && len(verb) > 2 && (acts || plain && it[1] != 'e') {
			return verb, true
		}
	}
	return "", false
}

// nearest returns the vocabulary word that text probably misspells. found is false if words of different looks are
// equally near.
func (v *vocabulary) nearest(text string) (word string, found bool) {
	first, _ := utf8.DecodeRuneInString(text)
	typed := []rune(text)
	var owners []string
	best := 3
	for _, candidate := range v.long[first] {
		meant := []rune(candidate)
		allowed := 1
		if len(meant) >= minTypos {
			allowed = 2
		}
		switch d := editDistance(typed, meant, min(allowed, best)); {
		case d > allowed || d > best:
		case d == best:
			other := func(name string) bool { return !slices.Contains(v.owners[candidate], name) }
			owners = slices.DeleteFunc(owners, other)
			word = min(word, candidate)
		default:
			best, word, owners = d, candidate, slices.Clone(v.owners[candidate])
		}
	}
	return word, len(owners) > 0
}

// editDistance counts missing, added, wrong or swapped letters. A result above the given maximum may be inexact.
func editDistance(a, b []rune, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		now, last, before := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}

type Entry struct {
	Name string
	// Words lists English phrases for the look. Names lists phrases in other languages.
	Words, Names []string
	// Medium is true for artistic media such as paint. A prompt gets at most one medium and a few other looks.
	Medium bool
}

// List returns the looks in order of application.
func List() []Entry {
	english, foreign := phrasesIn(phrasesFile), phrasesIn(namesFile)
	var list []Entry
	for _, e := range lexicon() {
		words := slices.Concat(english[e.name], english[e.name+"?"])
		list = append(list, Entry{Name: e.name, Words: words, Names: foreign[e.name], Medium: e.medium})
	}
	return list
}

// Changes returns the words of each small change, such as "brighter", and of each ordinary edit. The first word in
// each list is the name.
func Changes() [][]string {
	english := phrasesIn(phrasesFile)
	var list [][]string
	for _, m := range modifiers() {
		list = append(list, append([]string{m.name}, english[m.name]...))
	}
	for _, o := range operations() {
		list = append(list, append([]string{o.name}, english[o.name]...))
	}
	return list
}

// listsFile has the words that change a prompt's meaning, by the name of their list.
//
//go:embed lists.txt
var listsFile string

// fillersFile has the words that say nothing about a picture's appearance.
//
//go:embed fillers.txt
var fillersFile string

var lists = sync.OnceValue(func() map[string]map[string]bool {
	all := map[string]map[string]bool{"fillers": set(fillersFile)}
	for line := range strings.Lines(listsFile) {
		if name, list, found := strings.Cut(line, ": "); found && !strings.HasPrefix(line, "#") {
			all[name] = set(list)
			if phrases := strings.Split(list, ","); len(phrases) > 1 {
				all[name] = map[string]bool{}
				for _, phrase := range phrases {
					all[name][strings.Join(words(phrase), " ")] = true
				}
			}
		}
	}
	return all
})

// context is a rule about a word's class next to other words. A line of lists.txt has the word, its class there, the
// place of the neighbors ("before" or "after" the word, or "near": up to two words later) and the neighbors.
type context struct {
	word, place string
	class       class
	neighbors   map[string]bool
}

var contexts = sync.OnceValue(func() []context {
	named := map[string]class{"filler": filler, "joiner": joiner, "thing": thing, "negation": negation}
	var found []context
	for name, list := range lists() {
		if fields := strings.Fields(name); len(fields) == 3 {
			found = append(found, context{words(fields[0])[0], fields[2], named[fields[1]], list})
		}
	}
	return found
})

// fits reports whether the rule applies to the word with an index.
func (c context) fits(texts []string, at int) bool {
	near := texts[at+1 : min(at+2, len(texts))]
	switch c.place {
	case "after":
		near = texts[max(0, at-1):at]
	case "near":
		near = texts[at+1 : min(at+3, len(texts))]
	}
	return slices.ContainsFunc(near, func(word string) bool { return c.neighbors[word] })
}

func in(list, word string) bool { return lists()[list][word] }

// inAny reports whether one of the lists has a word.
func inAny(word string, names ...string) bool {
	return slices.ContainsFunc(names, func(list string) bool { return in(list, word) })
}
