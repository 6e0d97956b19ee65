package request

import (
	"github.com/cespare/xxhash/v2"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
)

const (
	// maxBeginningText limits the hashed bytes of one text. maxBeginning limits the hashed bytes of
	// all texts together.
	maxBeginningText = 16 << 10
	maxBeginning     = 64 << 10
	// promptBeginning limits the hashed bytes of a text completion's prompt, which has no turns.
	promptBeginning = 2 << 10
)

// Affinity hashes the beginning that a conversation's calls share, so that they go to the model server that has it
// cached (docs/contract/gateway.md#affinity). It hashes the key if the caller sends one, otherwise the body's
// prompt_cache_key, otherwise the system prompt and everything before the model's first message. It returns 0 if all
// of these are absent. The hash includes the account and is the same on every instance.
func (r *Request) Affinity(account, key string) uint64 {
	if !r.Route.Generates() {
		return 0 // no caching on these routes
	}
	b := beginning{left: maxBeginning}
	b.hash.Reset()
	b.name(account)
	b.name(r.Model.ID)
	switch {
	case key != "":
		b.name("key")
		b.name(key)
	case r.cacheKey.end > r.cacheKey.start+len(`""`):
		// The field is hashed like the header, so either can be used for the same key.
		b.name("key")
		b.text(r.body[r.cacheKey.start:r.cacheKey.end])
	default:
		b.name("text")
		b.of(r)
		if b.left == maxBeginning {
			return 0
		}
	}
	return max(b.hash.Sum64(), 1)
}

// beginning hashes the start of a request's conversation. The request must be valid JSON.
type beginning struct {
	hash xxhash.Digest
	left int
}

// zero separates hashed items. It cannot occur in a header or a JSON string.
var zero = []byte{0}

func (b *beginning) name(name string) {
	_, _ = b.hash.WriteString(name)
	_, _ = b.hash.Write(zero)
}

// text adds a JSON string without decoding it.
func (b *beginning) text(value []byte) {
	inside := value[1 : len(value)-1]
	inside = inside[:min(len(inside), maxBeginningText, b.left)]
	b.left -= len(inside)
	_, _ = b.hash.Write(inside)
	_, _ = b.hash.Write(zero)
}

func (b *beginning) of(r *Request) {
	body := r.body
	if r.Route == catalog.Completions {
		inside := body[r.prompt.start+1 : r.prompt.end-1]
		inside = inside[:min(len(inside), promptBeginning)]
		b.left -= len(inside)
		_, _ = b.hash.Write(inside)
		return
	}
	if r.system.end > 0 {
		b.texts(body, r.system.start)
	}
	if body[r.prompt.start] == '"' {
		b.texts(body, r.prompt.start)
		return
	}
	for i := next(body, r.prompt.start+1); body[i] != ']' && b.left > 0; i = next(body, i) {
		before := *b
		var belongs bool
		if i, belongs = b.message(body, i); !belongs {
			*b = before
			return
		}
	}
}

// message adds the texts of the message at i. belongs is false for a message from the model, which ends the hashed
// part.
func (b *beginning) message(body []byte, i int) (end int, belongs bool) {
	if body[i] != '{' {
		return i, false
	}
	belongs = true
	end = eachMember(body, i, func(name []byte, at int) int {
		switch string(name) {
		case "content":
			return b.texts(body, at)
		case "role":
			end := endOf(body, at)
			switch string(body[at:end]) {
			case `"system"`, `"developer"`, `"user"`:
			default:
				belongs = false
			}
			return end
		case "type":
			// In the Responses API, the first item that is not a message ends the shared prefix.
			end := endOf(body, at)
			belongs = belongs && string(body[at:end]) == `"message"`
			return end
		}
		return endOf(body, at)
	})
	return end, belongs
}

// texts adds all strings of the content at i and returns the content's end. It ignores cache marks, because
// clients move them between turns. A string and a list of parts with the same text have the same hash.
func (b *beginning) texts(body []byte, i int) (end int) {
	switch body[i] {
	case '"':
		end = jsonedit.EndOfString(body, i) + 1
		b.text(body[i:end])
		return end
	case '[':
		for i = next(body, i+1); body[i] != ']'; i = next(body, i) {
			i = b.texts(body, i)
		}
		return i + 1
	case '{':
		return eachMember(body, i, func(name []byte, at int) int {
			switch string(name) {
			case "type", "cache_control", "detail":
				return endOf(body, at)
			}
			return b.texts(body, at)
		})
	}
	return endOf(body, i)
}

// eachMember calls the function visit with the name and the value's offset for each member of the object at i. visit
// returns the end of the value. eachMember returns the end of the object.
func eachMember(body []byte, i int, visit func(name []byte, at int) (end int)) (end int) {
	for i = next(body, i+1); body[i] != '}'; i = next(body, i) {
		quote := jsonedit.EndOfString(body, i)
		i = visit(body[i+1:quote], next(body, quote+1))
	}
	return i + 1
}

// next returns the start of the next token, after spaces, commas and colons.
func next(text []byte, i int) int {
	for {
		switch text[i] {
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
		default:
			return i
		}
	}
}

func endOf(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = jsonedit.EndOfString(text, i)
		case '[', '{':
			depth++
			continue
		case ']', '}':
			if depth == 0 {
				return i // the end of a number or a literal
			}
			depth--
		case ' ', '\t', '\n', '\r', ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue // within a number or a literal, or between members
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}
