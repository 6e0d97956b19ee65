package look

import (
	"slices"
	"strings"
	"unicode"
)

// words splits a text into tokens: lower case, letters and digits only, without
// the ending of a plural, so that "Oil Paintings!" asks for an "oil painting".
func words(text string) []string {
	tokens := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for i, token := range tokens {
		tokens[i] = singular(token)
	}
	return tokens
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

// fillers say nothing about what a picture should look like. They are in the
// form that words returns.
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

// startsWith reports whether tokens begin with those of a phrase.
func startsWith(tokens, phrase []string) bool {
	return len(phrase) > 0 && len(phrase) <= len(tokens) && slices.Equal(tokens[:len(phrase)], phrase)
}

// has reports whether the words of a phrase occur in tokens, in order.
func has(tokens []string, phrase string) bool {
	wanted := words(phrase)
	for at := range tokens {
		if startsWith(tokens[at:], wanted) {
			return true
		}
	}
	return false
}
