package look

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

type token struct {
	// text is the word in the normalized spelling of phrases; see normal.
	text string
	// from and to are the word's position in the prompt, in bytes.
	from, to int
	// sentence is the number of sentences before the word. Any punctuation ends a sentence, and so do maxSentence words.
	sentence int
	// whole is true for verbs with "it", such as "ponlo".
	whole bool
}

// maxSentence limits the words of a sentence, because reading compares each word with all others of its sentence.
const maxSentence = 64

// tokenize splits a string into words. In scripts without spaces, each character is a word.
func tokenize(text string) []token {
	var found []token
	sentence, from := 0, -1
	add := func(word string, from, to int) {
		if before := len(found) - maxSentence; before >= 0 && found[before].sentence == sentence {
			sentence++
		}
		found = append(found, token{text: word, from: from, to: to, sentence: sentence})
	}
	end := func(to int) {
		if from >= 0 {
			if word := normal(text[from:to]); word != "" {
				add(word, from, to)
			}
			from = -1
		}
	}
	for at, r := range text {
		switch {
		case isUnspaced(r), strings.ContainsRune(emoji, r):
			end(at)
			add(string(r), at, at+utf8.RuneLen(r))
			if r == 'で' && (strings.HasSuffix(text[:at], "の") || strings.HasSuffix(text[:at], "まま")) {
				sentence++ // 青いので直して
			}
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r) && from >= 0:
			if from < 0 {
				from = at
			}
		case strings.ContainsRune("'’ʼ\u200c\u200d", r): // within a word: "don't"
		case from >= 0 && isDigit(text, at-1) && isDigit(text, at+1) && strings.ContainsRune(".,:", r): // "1.5"
		default:
			end(at)
			if strings.ContainsRune(".,;!?()\n–—…。、，！？；।॥؛،؟۔", r) {
				sentence++
			}
		}
	}
	end(len(text))
	return found
}

func isDigit(text string, at int) bool {
	return at >= 0 && at < len(text) && text[at] >= '0' && text[at] <= '9'
}

// emoji lists the emoji that name a look; others are ignored.
const emoji = "🔥❄⛄🌨🌊🌧☔🌙🌃🌅🌇🌫🍂🍁🌸🏜"

func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r == 'ー'
}

// words splits a string into normalized words: lower case, letters and digits only, without plural
// endings, so that "Oil Paintings!" requests an "oil painting".
func words(text string) []string {
	var list []string
	for _, t := range tokenize(text) {
		list = append(list, t.text)
	}
	return list
}

// normal strips a word's spelling variants: capital letters, accents, apostrophes and plural
// endings, and in Arabic the article, vowel signs and letter forms.
func normal(word string) string {
	word = norm.NFC.String(strings.Map(func(r rune) rune {
		switch {
		case r >= 0x300 && r <= 0x36f, r >= 0x64b && r <= 0x655, strings.ContainsRune("'’ʼ\u0670\u200c\u200dـ", r):
			return -1
		case r == 'ى' || r == 'ی':
			return 'ي'
		case r == 'ک':
			return 'ك'
		}
		for _, zero := range "०০٠۰" { // the digits of other scripts
			if r >= zero && r <= zero+9 {
				return '0' + r - zero
			}
		}
		return r
	}, norm.NFD.String(strings.ToLower(word))))
	word = strings.ReplaceAll(word, "ß", "ss")
	if rest, found := strings.CutPrefix(word, "ال"); found && utf8.RuneCountInString(rest) > 2 {
		word = rest
	}
	return singular(word)
}

func singular(token string) string {
	for _, ending := range []string{"ches", "shes", "sses", "xes"} {
		if strings.HasSuffix(token, ending) {
			return strings.TrimSuffix(token, "es")
		}
	}
	if len(token) > 3 && strings.HasSuffix(token, "s") && !strings.HasSuffix(token, "ss") {
		return strings.TrimSuffix(token, "s")
	}
	return token
}

func set(list string) map[string]bool {
	members := map[string]bool{}
	for _, word := range words(list) {
		members[word] = true
	}
	return members
}

// numberOf returns a number from 1 to 10 that is spelled out, or 0.
func numberOf(word string) int {
	return 1 + slices.IndexFunc(numbers[:], func(list string) bool { return in(list, word) })
}

var numbers = [...]string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10"}

// maxWithin is the number of words that may stand within a phrase.
const maxWithin = 8

// within returns the words that may stand within a phrase.
var within = sync.OnceValue(func() map[string]bool {
	all := maps.Clone(lists()["within"])
	for _, number := range numbers[1:] {
		maps.Copy(all, lists()[number])
	}
	return all
})

func skips(word string) bool { return within()[word] || isDigit(word, 0) }

// nextWords returns the words of a text that may be the second one of a phrase that begins with its first word.
func nextWords(text []string) []string {
	for i := 1; i < min(len(text), maxWithin+2); i++ {
		if !skips(text[i]) {
			return text[1 : i+1]
		}
	}
	return text[1:min(len(text), maxWithin+2)]
}

// match returns the number of words at the beginning of a text that make a phrase, or 0. Numbers, and words such as
// "it" and "a bit", may stand within the phrase.
func match(text, phrase []string) (length int) {
	for i, word := range phrase {
		for i > 0 && length < min(len(text), i+maxWithin) && text[length] != word && skips(text[length]) {
			length++
		}
		if length == len(text) || text[length] != word {
			return 0
		}
		length++
	}
	return length
}
