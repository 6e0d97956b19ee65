package gateway

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway/dialect"
	"cutroom/shared/service/gateway/jsonedit"
)

// This file handles routes that are not part of the contract but that upstreams serve natively. Responses are edited
// in place, as for chat.

var errNoAnswer = errors.New("the response does not have the format of the route")

func content(route catalog.Route) string {
	switch route {
	case catalog.Messages:
		return "content"
	case catalog.Responses:
		return "output"
	case catalog.Rerank:
		return "results"
	case catalog.CountTokens:
		return "input_tokens"
	}
	return "data"
}

// rewriteOther meters a response from a route outside the contract. It appends the edits that set the caller's model
// name and the metered usage.
func (c *completion) rewriteOther(edits []jsonedit.Edit, answer gjson.Result, secret string) ([]jsonedit.Edit, *failure) {
	var about, used gjson.Result
	broken := false
	jsonedit.ForEach(answer, func(key string, value gjson.Result) bool {
		switch key {
		case "model":
			edits = append(edits, jsonedit.Replace(value, c.pool.Slug))
		case content(c.route):
			edits = appendLast(edits, &about, value, "null")
		case "usage":
			edits = appendLast(edits, &used, value, "null")
		case "error":
			broken = value.Type != gjson.Null
		}
		return len(edits) <= maxEdits
	})
	if len(edits) > maxEdits {
		return nil, failed(errManyEdits)
	}
	c.counter.take(usageOn(c.route, used))
	if broken {
		return nil, errorInAnswer(answer, secret)
	}
	if c.route == catalog.CountTokens {
		if _, ok := tokens(about); !ok {
			return nil, failed(errNoAnswer)
		}
		return edits, nil
	}
	if !about.IsArray() {
		return nil, failed(errNoAnswer)
	}
	if !c.counter.known && c.route.Generates() {
		c.counter.addTexts(about, maxTextDepth)
	}
	if c.route == catalog.Responses {
		edits = c.appendKept(edits, answer, about)
	}
	c.settle()
	switch {
	case used.Exists() && c.counts.Estimated == 0:
		if used.IsObject() && c.counts.Cost > 0 && !used.Get("cost").Exists() {
			edits = append(edits, jsonedit.InsertMembers(used, `"cost":`+usage.Amount(c.counts.Cost)))
		}
	case used.Exists():
		edits = append(edits, jsonedit.Replace(used, appendUsageOn(nil, c.route, c.counts)))
	default:
		edits = append(edits, jsonedit.InsertMembers(answer, `"usage":`+string(appendUsageOn(nil, c.route, c.counts))))
	}
	return edits, nil
}

// maxTextDepth limits the nesting depth at which a response's texts are counted, because each level is scanned again.
const maxTextDepth = 8

func (t *tokenCounter) addTexts(value gjson.Result, depth int) {
	jsonedit.ForEach(value, func(key string, value gjson.Result) bool {
		switch key {
		case "text", "thinking", "arguments", "refusal":
			t.add(value.Str)
		case "input":
			t.add(value.Raw)
		default:
			if depth > 0 && (value.IsArray() || value.IsObject()) {
				t.addTexts(value, depth-1)
			}
		}
		return true
	})
}

func usageOn(route catalog.Route, used gjson.Result) (counts usage.Counts, present, ok bool) {
	if !used.IsObject() {
		return usage.Counts{}, false, false
	}
	read := func(name string) (n int64) {
		value := used.Get(name)
		if value.Type == gjson.Null {
			return 0
		}
		n, valid := tokens(value)
		ok = ok && valid
		return n
	}
	ok = true
	switch route {
	case catalog.Messages:
		present = used.Get("input_tokens").Exists() && used.Get("output_tokens").Exists()
		counts.CachedTokens = read("cache_read_input_tokens")
		// Skip huge numbers, because their sum would overflow. They make the usage invalid.
		for _, name := range []string{"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
			if n := read(name); n < 1<<40 {
				counts.PromptTokens += n
			} else {
				ok = false
			}
		}
		counts.CompletionTokens = read("output_tokens")
	case catalog.Responses:
		present = used.Get("input_tokens").Exists() && used.Get("output_tokens").Exists()
		counts.PromptTokens, counts.CompletionTokens = read("input_tokens"), read("output_tokens")
		counts.CachedTokens, _ = tokens(used.Get("input_tokens_details.cached_tokens"))
		counts.ReasoningTokens, _ = tokens(used.Get("output_tokens_details.reasoning_tokens"))
	default:
		name := "prompt_tokens"
		if !used.Get(name).Exists() {
			name = "total_tokens"
		}
		present = used.Get(name).Exists()
		counts.PromptTokens = read(name)
	}
	if counts.CachedTokens > counts.PromptTokens {
		counts.CachedTokens = 0
	}
	if counts.ReasoningTokens > counts.CompletionTokens {
		counts.ReasoningTokens = 0
	}
	return counts, present, ok
}

func appendUsageOn(out []byte, route catalog.Route, counts usage.Counts) []byte {
	switch route {
	case catalog.Messages:
		return dialect.AppendMessagesUsage(out, counts)
	case catalog.Responses:
		return dialect.AppendResponsesUsage(out, counts)
	}
	out = strconv.AppendInt(append(out, `{"prompt_tokens":`...), counts.PromptTokens, 10)
	out = strconv.AppendInt(append(out, `,"total_tokens":`...), billed(counts), 10)
	if counts.Cost > 0 {
		out = append(append(out, `,"cost":`...), usage.Amount(counts.Cost)...)
	}
	return append(out, '}')
}

// isTyped reports whether the route streams typed events instead of chunks.
func isTyped(route catalog.Route) bool {
	return route == catalog.Messages || route == catalog.Responses
}

// passTyped handles an event of a typed stream. done means that it was the last event.
func (r *relay) passTyped(e event) (done bool, f *failure) {
	c := r.completion
	if string(e.data) == "[DONE]" && c.route.IsAudio() && r.started {
		c.stream.out = append(c.stream.out, doneEvent...)
		return true, nil
	}
	if string(e.data) == "[DONE]" {
		// The stream must not end before its final event.
		return false, failed(io.ErrUnexpectedEOF)
	}
	e.data = jsonedit.ValidUTF8(e.data)
	object, ok := r.parser.ParseObject(e.data)
	if !ok {
		return false, failed(errors.New("the upstream sent an event that is not a JSON object"))
	}
	kind := object.Get("type").Str
	switch {
	case kind == "error" || kind == "response.failed" || object.Get("error").IsObject():
		if inner := object.Get("response"); inner.IsObject() {
			c.counter.take(usageOn(c.route, inner.Get("usage")))
		}
		return false, errorInAnswer(object, r.secret)
	case !isEventName(kind) && !c.route.IsAudio():
		return false, failed(errNoStream)
	}
	if !r.started {
		r.started, c.firstToken = true, c.gateway.config.Now()
	}
	r.passed = true
	edits := r.edits[:0]
	for _, path := range []string{"message.model", "response.model", "model"} {
		if value := object.Get(path); value.Exists() {
			edits = append(edits, jsonedit.Replace(value, c.pool.Slug))
		}
	}
	if inner := object.Get("response"); inner.IsObject() && c.route == catalog.Responses {
		edits = c.appendKept(edits, inner, inner.Get("output"))
	}
	edits = c.appendItemID(c.appendItemID(edits, object.Get("item.id")), object.Get("item_id"))
	edits, done = r.meterTyped(kind, object, edits)
	if n := object.Get("sequence_number"); n.Exists() {
		c.sequence = n.Int() + 1
	}
	out := c.stream.out
	if isEventName(kind) { // some servers send chunks of transcriptions without a type
		out = append(append(append(out, "event: "...), kind...), '\n')
	}
	out = append(out, "data: "...)
	at := len(out)
	out = jsonedit.Append(out, e.data, edits)
	if done && c.keeping.id != "" {
		c.keepResponse([]byte(gjson.GetBytes(out[at:], "response").Raw))
	}
	c.stream.out = append(out, "\n\n"...)
	return done, nil
}

// meterTyped records an event's tokens and reports whether the event ends the stream. It replaces a
// missing or implausible count with the gateway's own.
func (r *relay) meterTyped(kind string, object gjson.Result, edits []jsonedit.Edit) ([]jsonedit.Edit, bool) {
	c := r.completion
	if c.route.IsAudio() {
		c.hear(object)
		return edits, false
	}
	switch kind {
	case "message_start":
		used := object.Get("message.usage")
		r.prompted = strings.Clone(used.Raw)
		c.counter.take(usageOn(c.route, used))
	case "message_delta":
		used := object.Get("usage")
		if used.IsObject() && !used.Get("input_tokens").Exists() && gjson.Parse(r.prompted).IsObject() {
			counts, present, ok := usageOn(c.route, gjson.Parse(r.prompted))
			var valid bool
			counts.CompletionTokens, valid = tokens(used.Get("output_tokens"))
			c.counter.take(counts, present, ok && valid)
		} else {
			c.counter.take(usageOn(c.route, used))
		}
		c.settle()
		edits = c.appendOwn(edits, object, used)
	case "message_stop":
		return edits, true
	case "response.completed", "response.incomplete":
		inner := object.Get("response")
		used := inner.Get("usage")
		c.counter.take(usageOn(c.route, used))
		c.settle()
		return c.appendOwn(edits, inner, used), true
	default:
		delta := object.Get("delta")
		c.counter.add(delta.Str)
		if delta.IsObject() {
			for _, name := range []string{"text", "thinking", "partial_json"} {
				c.counter.add(delta.Get(name).Str)
			}
		}
	}
	return edits, false
}

// appendOwn appends the edit that sets the gateway's own usage if the upstream's is unusable.
func (c *completion) appendOwn(edits []jsonedit.Edit, object, used gjson.Result) []jsonedit.Edit {
	if c.counts.Estimated == 0 || !object.IsObject() {
		return edits
	}
	own := appendUsageOn(nil, c.route, c.counts)
	if used.Exists() {
		return append(edits, jsonedit.Replace(used, own))
	}
	return append(edits, jsonedit.InsertMembers(object, `"usage":`+string(own)))
}

func isEventName(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && c != '_' && c != '.' {
			return false
		}
	}
	return name != ""
}
