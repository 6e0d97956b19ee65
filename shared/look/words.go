package look

import (
	"strings"
	"unicode"
)

// words splits a text into tokens: lower case, letters and digits only, without
// the s of a plural, so that "Oil Paintings!" asks for an "oil painting".
func words(text string) []string {
	tokens := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for i, token := range tokens {
		if len(token) > 3 && strings.HasSuffix(token, "s") && !strings.HasSuffix(token, "ss") {
			tokens[i] = strings.TrimSuffix(token, "s")
		}
	}
	return tokens
}

// fillers say nothing of what a picture should look like. They are as words
// gives them.
var fillers = set(`a an and are as at be been by can could do for from get give has have i in into is it its
	just like look looking looked make making me my of on onto or our please put should so some style styled
	that the their them then there these thi this those to turn turned use using very wa was want we were with
	would you your change add transform convert apply edit video clip image picture photo scene effect version
	whole entire everything all more much really render rendered shot frame footage reimagine restyle
	beautiful nice great good high quality detailed detail 4k hd best masterpiece stunning amazing`)

// negations take back the word that follows.
var negations = set("no not without never remove")

func set(list string) map[string]bool {
	members := map[string]bool{}
	for _, word := range strings.Fields(list) {
		members[word] = true
	}
	return members
}

// phraseAt tells how many tokens at the head of the list make the phrase up, 0
// when they do not.
func phraseAt(tokens []string, phrase string) int {
	parts := words(phrase)
	if len(parts) > len(tokens) {
		return 0
	}
	for i, part := range parts {
		if tokens[i] != part {
			return 0
		}
	}
	return len(parts)
}
