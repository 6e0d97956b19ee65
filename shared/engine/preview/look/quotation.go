package look

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
	return before[max(0, len(before)-6):].any(func(p part) bool {
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
