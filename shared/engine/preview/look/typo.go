package look

import (
	"slices"
	"strings"
	"unicode/utf8"
)

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
	left := maxMended
	for i, t := range tokens {
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
		if left--; left < 0 {
			return
		}
		if word, found := v.nearest(t.text); found {
			tokens[i].text = word
		}
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
