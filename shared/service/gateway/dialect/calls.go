package dialect

import (
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/jsonedit"
)

// ToolCalls distinguishes the function calls of a streamed choice: by index, or by id if several have the same index.
type ToolCalls struct {
	latest  map[int64]*ToolCall
	byID    map[string]*ToolCall
	numbers map[int64]bool
	next    int64
	Count   int
}

type ToolCall struct {
	// Number is the call's index, or an unused number if an earlier call has that index.
	Number int64
	index  int64
	id     string
	// The walk uses these fields. shown is the id for the caller, or empty if an earlier call has the same id. While
	// an earlier call is not complete, waiting is true and arguments holds the arguments, as JSON without quotes.
	shown, name string
	waiting     bool
	arguments   []byte
	nesting     nesting
}

// Find returns the call that an element of tool_calls continues, or nil if it starts a new call.
func (c *ToolCalls) Find(index int64, call gjson.Result) *ToolCall {
	if c == nil {
		return nil
	}
	found := c.latest[index]
	id := call.Get("id").Str
	if found == nil || id == "" || id == found.id {
		return found
	}
	if other := c.byID[id]; other != nil && other.index == index {
		c.latest[index] = other
		return other
	}
	if call.Get("function.name").Str != "" {
		return nil
	}
	return found
}

func (c *ToolCalls) Add(index int64, call gjson.Result) *ToolCall {
	if c.latest == nil {
		c.latest, c.byID, c.numbers = map[int64]*ToolCall{}, map[string]*ToolCall{}, map[int64]bool{}
	}
	added := &ToolCall{
		Number: index, index: index, id: strings.Clone(call.Get("id").Str), name: strings.Clone(call.Get("function.name").Str),
	}
	if c.numbers[index] {
		added.Number = c.next
	}
	// Clients identify calls by id, so a repeated id is replaced.
	if c.byID[added.id] == nil {
		added.shown = added.id
	}
	c.numbers[added.Number], c.latest[index], c.byID[added.id] = true, added, added
	c.next = max(c.next, added.Number+1)
	c.Count++
	return added
}

// keep stores arguments of a waiting call and returns their size in bytes.
func (c *ToolCall) keep(arguments gjson.Result) int {
	before := len(c.arguments)
	if arguments.IsObject() {
		quoted := jsonedit.Quote(arguments.Raw)
		c.arguments = append(c.arguments, quoted[1:len(quoted)-1]...)
	} else {
		c.arguments = append(c.arguments, inside(arguments)...)
	}
	return len(c.arguments) - before
}

// nesting follows the brackets of a JSON text that arrives in pieces.
type nesting struct {
	depth           int
	inText, escaped bool
	complete        bool
}

func (n *nesting) add(piece string) {
	for _, c := range []byte(piece) {
		switch {
		case n.escaped:
			n.escaped = false
		case n.inText:
			n.escaped, n.inText = c == '\\', c != '"'
		case c == '"':
			n.inText = true
		case c == '{' || c == '[':
			n.depth++
		case c == '}' || c == ']':
			n.depth--
			n.complete = n.depth == 0
		}
	}
}
