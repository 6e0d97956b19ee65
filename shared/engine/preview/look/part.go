package look

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type class int

const (
	// content is a word that is not in the lexicon.
	content class = iota
	// named is a lexicon phrase, or a word that the caller handles.
	named
	filler
	joiner
	// placing, turning, thing and negation start a clause. refusal cancels an entire clause.
	placing
	turning
	thing
	negation
	refusal
)

// part is a word in a prompt, or a lexicon phrase.
type part struct {
	class       class
	first, last token
	// words are the part's words in normalized spelling.
	words string
	// means is the meaning of a lexicon phrase. It is zero for words that the caller handles.
	means meaning
	// arguments are for an ordinary edit. strength is for a modifier, or 0.
	arguments []argument
	strength  float64
	// alone is true if the phrase may name an object in the picture instead.
	alone bool
	// whole is true for words that refer to the entire picture. scope is true for words that make
	// an adjacent color apply to the entire picture.
	whole, scope bool
	// spared is the area that the words exclude, as in "everything but me", or Whole. spares means that they exclude
	// seconds, as in "except the last second".
	spared Area
	spares bool
}

// ignore turns a part into a filler. disown turns it into an unknown word.
func (p *part) ignore() { p.class, p.means = filler, meaning{} }
func (p *part) disown() { p.class, p.means = content, meaning{} }

// in reports whether a part starts with a word from a list.
func (p part) in(list string) bool { return in(list, p.first.text) }

// names reports whether a part's phrase has a word from a list.
func (p part) names(list string) bool {
	return slices.ContainsFunc(p.means.phrase, func(word string) bool { return in(list, word) })
}

// kinds returns the kinds of a part's first argument, or 0.
func (p part) kinds() kinds {
	if len(p.arguments) == 0 {
		return 0
	}
	return p.arguments[0].kinds
}

// isEdit reports whether a part requests the edit with a name.
func (p part) isEdit(name string) bool { return p.means.edit != nil && p.means.edit.name == name }

// changes reports whether a part requests a look or a small change.
func (p part) changes() bool  { return p.means.look != nil || p.means.modifier != nil }
func (p part) isColor() bool  { return p.means.modifier != nil && p.means.modifier.isColor() }
func (p part) isGround() bool { return p.means.edit != nil && p.means.edit.isGround() }
func (p part) states() bool   { return p.names("toos") || p.names("zus") || p.names("states") }
func (p part) isFrame() bool  { return p.isEdit("letterbox") || p.isEdit("border") }
func (p part) isSecond() bool { return isSecond(p.first.text) }

// describes reports whether a noun follows a part: "her", "the" or "red".
func (p part) describes() bool {
	return in("articles", p.last.text) || in("owners", p.last.text) || p.isColor()
}

// writes reports whether a part is the text that an edit draws.
func (p part) writes() bool { return p.kinds() == quotation }

// reader turns a prompt into parts.
type reader struct {
	prompt string
	// known reports whether the caller handles a word. It may be nil.
	known  func(word string) bool
	tokens []token
	texts  []string
	at     int
	found  clause
}

// parts finds the texts to write, the phrases, the arguments and the other words of a prompt.
func parts(prompt string, known func(word string) bool) clause {
	r := reader{prompt: prompt, known: known, tokens: tokenize(prompt)}
	learned().mend(r.tokens)
	for _, t := range r.tokens {
		r.texts = append(r.texts, t.text)
	}
	for r.at < len(r.tokens) {
		if r.quotation() {
			continue
		}
		means, length := r.phrase()
		if means.inert() {
			length = r.word(means, length)
		} else {
			r.named(means, length)
		}
		r.at += length
	}
	return r.found
}

func (r *reader) before() part {
	if len(r.found) == 0 {
		return part{}
	}
	return r.found[len(r.found)-1]
}

// quotation reads a text to write. It returns false if no such text starts at the current token.
func (r *reader) quotation() bool {
	rest := r.tokens[r.at:]
	text, end := r.quoted()
	if end == 0 || !announces(r.found) && !announced(rest, end) {
		return false
	}
	p := part{class: named, first: rest[0], means: meant(Title)}
	if len(r.found) > 0 {
		p.first.sentence = r.before().last.sentence
	}
	p.arguments = []argument{{quotation, func(a *arguments) { a.text = text }}}
	inside := tokenize(text + " x")
	shift := p.first.sentence - rest[0].sentence - inside[len(inside)-1].sentence
	for ; r.at < len(r.tokens) && r.tokens[r.at].from < end; r.at++ {
		p.last = r.tokens[r.at]
	}
	p.last.sentence = p.first.sentence
	for i := range r.tokens[r.at:] { // punctuation within the quotation ends no sentence
		r.tokens[r.at+i].sentence += shift
	}
	r.found = append(r.found, p)
	return true
}

// phrase returns the longest phrase that starts at the current token, and the number of its tokens, or 1.
func (r *reader) phrase() (longest meaning, length int) {
	length = 1
	if a, _ := argumentAt(r.prompt, r.tokens[r.at:]); a.kinds == pixels {
		return longest, length
	}
	next := nextWords(r.texts[r.at:])
	for _, m := range learned().meanings[r.texts[r.at]] {
		if len(m.phrase) > 1 && !slices.Contains(next, m.phrase[1]) {
			continue // saves time
		}
		n := match(r.texts[r.at:], m.phrase)
		if n == 0 || len(m.phrase) <= len(longest.phrase) || r.tokens[r.at+n-1].sentence != r.tokens[r.at].sentence {
			continue
		}
		after := r.at + n
		if in("halves", m.phrase[len(m.phrase)-1]) && after < len(r.texts) && isSecond(r.texts[after]) {
			continue // "first half second"
		}
		longest, length = m, n
	}
	return longest, length
}

// named adds a phrase for a look, a change or an edit, with the arguments and the degree that stand within it.
func (r *reader) named(means meaning, length int) {
	first, next := r.at, r.at+length
	phrase := strings.Join(means.phrase, " ")
	if phrase == "noir" && first > 0 && in("noirs", r.texts[first-1]) {
		means = meant("black")
	}
	p := part{class: named, first: r.tokens[first], last: r.tokens[next-1], means: means, words: phrase}
	if shape, found := directions()[phrase]; found && length > 1 {
		p.arguments = append(p.arguments, shape) // 세로
	}
	p.strength, p.whole, p.scope = degree(p.first.text), p.first.whole, p.in("scopes")
	for i := first; i < next; i++ {
		if a, _ := argumentAt(r.prompt, r.tokens[i:next]); a.set != nil && a.kinds != share { // not "a quarter turn"
			p.arguments = append(p.arguments, a)
		}
		if !slices.Contains(means.phrase, r.texts[i]) {
			p.strength = max(p.strength, degree(r.texts[i])) // "turn it down a bit"
		}
		p.whole = p.whole || in("wholes", r.texts[i])
	}
	p.alone = in("objectlike", phrase) && !isStyle(r.texts, first, next)
	if in("unseens", phrase) {
		p.strength = 2.2
	}
	r.found = append(r.found, p)
}

// word adds a word or an argument, and returns the number of its tokens. A phrase without a meaning, such as "comic
// sans", is one word.
func (r *reader) word(inert meaning, length int) int {
	text, phrase := r.texts[r.at], strings.Join(inert.phrase, " ")
	p := part{class: classOf(text), first: r.tokens[r.at], strength: max(degree(text), degree(phrase))}
	noun := in("nouns", text) && r.before().describes() // "her dress", "the clip"
	switch {
	case inert.moot, length == 1 && noun && in("wholes", text):
		p.class = filler
	case length > 1, noun:
		p.class = content
	}
	if a, taken := argumentAt(r.prompt, r.tokens[r.at:]); taken >= length {
		if r.before().isSecond() && a.kinds&seconds != 0 {
			a.kinds = seconds // "second 2"
		}
		p.arguments, length = []argument{a}, taken
	}
	p.class = r.inContext(p.class)
	if p.class == content && r.known != nil && r.known(strings.ToLower(r.prompt[p.first.from:p.first.to])) {
		p.class = named
	}
	p.whole, p.scope = p.first.whole || in("wholes", text), in("scopes", text) && p.class != content
	p.last, p.words = r.tokens[r.at+length-1], strings.Join(r.texts[r.at:r.at+length], " ")
	r.found = append(r.found, p)
	return length
}

// inContext returns the class of the current word if its neighbors change it, or the given class.
func (r *reader) inContext(usual class) class {
	text, next := r.texts[r.at], r.at+1
	last := next == len(r.texts)
	for _, rule := range contexts() {
		if rule.word == text && rule.fits(r.texts, r.at) {
			return rule.class
		}
	}
	if !last && (in("keeps", text) && isTime(r.prompt, r.tokens[next:]) || in("opens", text) && r.at == 0) {
		return filler // "keep only 1 s to 2 s"
	}
	return usual
}

// isTime reports whether tokens start with seconds, after words such as "only".
func isTime(prompt string, tokens []token) bool {
	timed := false
	for ; len(tokens) > 1; tokens = tokens[1:] {
		word := tokens[0].text
		if classOf(word) != filler && !inAny(word, "onlys", "ordinals", "keeps") && !isTimely(word) {
			break
		}
		timed = timed || isSecond(word)
	}
	a, _ := argumentAt(prompt, tokens)
	return a.kinds&share != 0 || a.kinds&seconds != 0 && (timed ||
		slices.ContainsFunc(tokens[:min(len(tokens), 5)], func(t token) bool {
			a, _ := argumentAt(prompt, []token{t})
			return isSecond(t.text) || a.kinds == seconds
		}))
}

// isStyle reports whether the words in [first, next) are requested as a style.
func isStyle(texts []string, first, next int) bool {
	if next < len(texts) && in("styleCues", texts[next]) && !in("likes", texts[next]) {
		return true
	}
	for first--; first >= 0 && in("articles", texts[first]); first-- {
	}
	return first >= 0 && in("styleCues", texts[first]) &&
		(!in("ofs", texts[first]) || first > 0 && in("styleCues", texts[first-1]))
}

// classes are the lists of the words of a class. If a word is in several lists, the first applies.
var classes = []struct {
	list  string
	class class
}{
	{"negations", negation}, {"refusals", refusal}, {"things", thing}, {"turnings", turning},
	{"placings", placing}, {"joiners", joiner}, {"fillers", filler}, {"wholes", filler},
}

func classOf(word string) class {
	for _, c := range classes {
		if in(c.list, word) {
			return c.class
		}
	}
	return content
}

// closings maps opening quotation marks to the marks that may close them.
var closings = map[rune]string{'"': `"`, '“': "”\"", '„': "“”\"", '«': "»", '「': "」", '『': "』", '\'': "'"}

// maxQuotation limits a quotation, in bytes. It also limits the search for the closing mark.
const maxQuotation = 1000

// quoted returns the quotation that starts at the current token. end is the offset of its end in bytes, or 0 if there
// is none.
func (r *reader) quoted() (text string, end int) {
	t, last := r.tokens[r.at], r.before()
	gap := r.prompt[last.last.to:t.from]
	opening := strings.LastIndexFunc(gap, func(r rune) bool { return closings[r] != "" })
	first, _ := utf8.DecodeRuneInString(last.last.text)
	switch {
	case opening < 0,
		opening == 0 && len(r.found) > 0 && !isUnspaced(first),      // "It's"
		last.writes() && !strings.ContainsAny(gap[:opening], " \n"): // the mark closes that quotation
		return r.unquoted(gap)
	}
	mark, size := utf8.DecodeRuneInString(gap[opening:])
	from := last.last.to + opening + size
	length := closingAt(r.prompt[from:min(len(r.prompt), from+maxQuotation)], closings[mark])
	if from+length <= t.from {
		return "", 0
	}
	return strings.TrimSpace(r.prompt[from : from+length]), from + length
}

// unquoted returns a text without quotation marks that starts at the current token, and the offset of its end. It
// follows a word such as "text": `add text Hello World`, `a caption that says see you soon`.
func (r *reader) unquoted(gap string) (text string, end int) {
	tokens, last := r.tokens[r.at:], r.before()
	t := tokens[0]
	capital := func(t token) bool {
		first, _ := utf8.DecodeRuneInString(r.prompt[t.from:])
		return unicode.IsUpper(first)
	}
	says := len(r.found) > 1 && in("sayings", last.last.text) && announces(r.found[:len(r.found)-1])
	begins := strings.Contains(gap, ":") || capital(t) && !capital(last.first)
	if strings.Trim(gap, " :") != "" || !says && (!in("writings", last.last.text) || !begins) {
		return "", 0
	}
	for i := 1; i < len(tokens); i++ {
		next := tokens[i]
		ends := inAny(next.text, "joiners", "insides", "exceptions") && !capital(tokens[min(i+1, len(tokens)-1)]) &&
			(!says || slices.ContainsFunc(tokens[min(i+1, len(tokens)):min(i+3, len(tokens))], requests))
		if next.from-t.from > maxQuotation || next.sentence != t.sentence || ends {
			return strings.TrimRight(r.prompt[t.from:next.from], " ,.;:"), next.from
		}
	}
	return strings.TrimSpace(r.prompt[t.from:]), len(r.prompt)
}

// requests reports whether a word after a text belongs to the request: "see you at the top" or "see you in red", but
// not "see you in june".
func requests(t token) bool {
	return directions()[t.text].set != nil || classOf(t.text) >= placing || len(learned().named(t.text)) > 0
}

// closingAt returns the offset of the first closing mark that no letter follows, unlike the one in "It's", or -1.
func closingAt(text, marks string) int {
	for at, r := range text {
		if strings.ContainsRune(marks, r) {
			if next, _ := utf8.DecodeRuneInString(text[at+utf8.RuneLen(r):]); r != '\'' || !unicode.IsLetter(next) {
				return at
			}
		}
	}
	return -1
}

// announces reports whether the parts before a quotation show that it is text to write.
func announces(before clause) bool {
	again := len(before) > 0 && before[len(before)-1].class == joiner && before.any(part.writes) // `"A" … and "B"`
	return again || before[max(0, len(before)-6):].any(func(p part) bool {
		return p.class == placing || p.in("announcers") || p.isEdit(Title)
	})
}

// announced reports whether the words after a quotation, which ends at an offset, show that it is text to write.
func announced(tokens []token, end int) bool {
	for len(tokens) > 0 && tokens[0].from < end {
		tokens = tokens[1:]
	}
	return slices.ContainsFunc(tokens[:min(len(tokens), 6)], func(t token) bool {
		return inAny(t.text, "announcers", "writings") || slices.Contains(learned().named(t.text), Title)
	})
}
