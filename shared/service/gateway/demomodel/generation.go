package demomodel

import (
	"strings"
	"unicode/utf8"
)

// generation is a text as a model would generate it, token by token.
type generation struct {
	// pieces are streamed one after another: the text of each token, or of
	// several tokens if a character spans them.
	pieces []string
	ids    []int
	// finish is why it ended: "stop" or "length".
	finish string
}

// text returns the whole text.
func (g generation) text() string { return strings.Join(g.pieces, "") }

// bounds say when a generation ends.
type bounds struct {
	// tokens is the maximum number of tokens.
	tokens int
	stop   stops
	// endless repeats the text until another bound is met.
	endless bool
}

// generate tokenizes a text within the bounds.
func (s *Server) generate(text string, b bounds) (generation, error) {
	if b.endless {
		ids := s.config.Tokenizer.Encode(text)
		text = strings.Repeat(text, b.tokens/max(len(ids), 1)+1)
	}
	text, _ = b.stop.before(text)
	ids := s.config.Tokenizer.Encode(text)
	g := generation{ids: ids, finish: "stop"}
	if len(ids) > b.tokens {
		g.ids, g.finish = ids[:b.tokens], "length"
	}
	held := ""
	for _, id := range g.ids {
		piece, err := s.config.Tokenizer.Decode(id)
		if err != nil {
			return generation{}, err
		}
		// A character spans tokens, and the bound may cut one off: incomplete
		// bytes are not sent.
		if held += piece; utf8.ValidString(held) {
			g.pieces = append(g.pieces, held)
			held = ""
		}
	}
	return g, nil
}

// quoted returns the beginning of a text on one line, in quotation marks.
func quoted(text string) string {
	const shown = 200
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > shown {
		text = string(runes[:shown]) + "…"
	}
	return "“" + text + "”"
}

// openings are the first sentences of answers, chosen by the seed and the
// number of the choice.
var openings = []string{
	"This is Cutroom's demonstration model.",
	"You have reached Cutroom's demonstration model.",
	"Cutroom's demonstration model answers.",
	"Hello from Cutroom's demonstration model.",
}

const (
	confession = " It is no language model and understands nothing: it makes this answer from your request alone."
	advice     = " To talk to a language model, add a model server to the catalog."
)

// say composes an answer around what it says about the request.
func say(variant int64, about string) string {
	i := int(((variant % int64(len(openings))) + int64(len(openings))) % int64(len(openings)))
	return openings[i] + confession + about + advice
}
