package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/upstream"
)

// maxAnswer limits the size of a non-streamed response, in bytes. Such a response is buffered,
// because its header reports the token counts, which are known only at the end.
const maxAnswer = 16 << 20

// maxEdits limits the number of edits to a response, because an edit takes many times the memory of the empty choice
// that it completes.
const maxEdits = 10_000

// A response is in memory twice, as received and as sent. A translation also keeps its text and items.
const answerCopies, translatedCopies = 2, 5

// maxKeptAnswer is the size of the largest response buffer that is kept for reuse, in bytes. usualEdits is the number
// of edits that are kept for reuse.
const maxKeptAnswer, usualEdits = 16 << 10, 64

var (
	errAnswerTooLong = errors.New("the response is too large: it has more than 16 MiB")
	errManyEdits     = fmt.Errorf("the response needs more than %d edits, which means that it has too many choices", maxEdits)
	errNoCompletion  = errors.New("the response is not a completion")
)

// rewriter holds the buffers for reading and rewriting a response.
type rewriter struct {
	read, written []byte
	parser        jsonedit.Parser
	edits         []jsonedit.Edit
}

var rewriters = sync.Pool{New: func() any { return new(rewriter) }}

func (w *rewriter) free() {
	clear(w.edits)
	if w.edits = w.edits[:0]; max(cap(w.read), cap(w.written)) <= maxKeptAnswer && cap(w.edits) <= usualEdits {
		rewriters.Put(w)
	}
}

func (c *completion) answer(r upstream.Reply, secret string) *failure {
	w, memory := rewriters.Get().(*rewriter), c.reservation()
	defer func() {
		memory.releaseAll()
		w.free()
	}()
	body, err := c.readAnswer(w.read[:0], r, &memory)
	w.read = body
	if err != nil {
		f := cutShort(err)
		f.tryNext = f.outcome == Failed && !errors.Is(err, errAnswerTooLong)
		return f
	}
	c.counter.reset()
	if c.route.IsAudio() && audioType(r.ContentType)[0] != jsonType[0] {
		c.settle()
		c.setUsed(c.w.Header())
		c.read(r)
		writeWhole(c.w, http.StatusOK, audioType(r.ContentType), body)
		return nil
	}
	body = jsonedit.ValidUTF8(body)
	completion, ok := w.parser.ParseObject(body)
	if !ok {
		f := failed(errNoCompletion)
		f.tryNext = true
		return f
	}
	rewrite := c.rewriteAnswer
	switch {
	case c.route.IsAudio():
		rewrite = c.rewriteTranscription
	case c.request.Route != catalog.Chat && c.request.Route != catalog.Completions:
		rewrite = c.rewriteOther
	}
	edits, f := rewrite(w.edits, completion, secret)
	if f != nil {
		f.tryNext = f.outcome == Failed
		return f
	}
	w.edits, w.written = edits, jsonedit.Append(w.written[:0], body, edits)
	if c.translation != nil {
		if w.written, err = c.translateAnswer(w.written); err != nil {
			return failed(err)
		}
	}
	c.keepResponse(w.written)
	c.setUsed(c.w.Header())
	c.read(r)
	writeJSON(c.w, http.StatusOK, w.written)
	return nil
}

// read ends the call to the upstream before the response is sent, because a caller may read it slowly.
func (c *completion) read(r upstream.Reply) {
	_ = r.Body.Close() // the response was read completely
	c.release()
}

// readAnswer appends the body to a buffer. While it reads, it acquires memory for all copies of the
// response if they take more than maxKeptBuffer.
//
// Errors: *apierror.Error if no memory is available; errors from the body.
func (c *completion) readAnswer(body []byte, r upstream.Reply, memory *reservation) ([]byte, error) {
	limit := maxAnswer + 1
	if n := r.Length; n >= 0 && n < maxAnswer {
		limit = int(n) + 1 // one more byte, to see EOF
	}
	copies := answerCopies
	if c.translation != nil {
		copies = translatedCopies
	}
	// Some servers send spaces while they generate, so a limit on silence is not enough. The
	// complete response must arrive within the timeout for the first byte.
	left := c.firstByte()
	for end := time.Now().Add(left); ; left = time.Until(end) {
		if left <= 0 {
			return body, upstream.ErrSilent
		}
		r.Body.Allow(min(c.idle(), left))
		if len(body) == cap(body) {
			if len(body) >= limit {
				return body, errAnswerTooLong
			}
			size := min(max(2*cap(body), maxKeptAnswer), limit)
			if need := int64(copies * size); need > maxKeptBuffer {
				if apiErr := memory.acquire(c.r.Context(), need-memory.held); apiErr != nil {
					return body, apiErr
				}
			}
			grown := make([]byte, len(body), size)
			copy(grown, body)
			body = grown
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF || err == nil && r.Body.Ended() && len(body) <= maxAnswer {
			return body, nil
		}
		if err != nil {
			return body, err
		}
	}
}

// rewriteAnswer meters an upstream's response. It appends the edits that set the caller's model name and all fields
// required by docs/contract/gateway.md#answers.
func (c *completion) rewriteAnswer(edits []jsonedit.Edit, answer gjson.Result, secret string) ([]jsonedit.Edit, *failure) {
	var id, object, created, named, broken bool
	var choices, used gjson.Result
	jsonedit.ForEach(answer, func(key string, value gjson.Result) bool {
		switch key {
		case "id":
			id = true
		case "object":
			object = true
		case "created":
			created = true
		case "model":
			named = true
			edits = append(edits, jsonedit.Replace(value, c.pool.Slug))
		case "choices":
			edits = appendLast(edits, &choices, value, "[]")
		case "usage":
			edits = appendLast(edits, &used, value, "null")
		case "error":
			broken = value.Type != gjson.Null
		}
		return len(edits) <= maxEdits
	})
	_, exact := c.counter.report(used)
	if broken {
		return nil, errorInAnswer(answer, secret)
	}
	if !choices.IsArray() {
		return nil, failed(errNoCompletion)
	}
	position := 0
	jsonedit.ForEach(choices, func(_ string, choice gjson.Result) bool {
		if !c.counter.known {
			c.counter.addChoice(choice)
		}
		edits = appendChoice(edits, choice, position, c.request.Route)
		position++
		return len(edits) <= maxEdits
	})
	if len(edits) > maxEdits {
		return nil, failed(errManyEdits)
	}
	c.settle()
	members := c.missing(id, object, created, named)
	switch {
	case !used.Exists():
		members = append(members, `"usage":`+string(appendCounts(nil, c.counts, c.request.Route)))
	case !exact || c.counts.Estimated > 0 || c.counts.Cost > 0:
		edits = appendUsage(edits, used, c.counts, c.request.Route)
	}
	if len(members) > 0 {
		edits = append(edits, jsonedit.InsertMembers(answer, members...))
	}
	return edits, nil
}

func (c *completion) missing(id, object, created, named bool) []string {
	var members []string
	if !id {
		members = append(members, `"id":`+string(jsonedit.Quote(answerID(c.request.Route, httpserver.RequestID(c.r.Context())))))
	}
	if !object {
		members = append(members, `"object":"`+answerObject(c.request.Route)+`"`)
	}
	if !created {
		members = append(members, `"created":`+strconv.FormatInt(c.started.Unix(), 10))
	}
	if !named {
		members = append(members, `"model":`+string(c.pool.Slug))
	}
	return members
}

// appendLast sets a member's value. JSON readers disagree about duplicate names, so the last value is used and
// earlier values are emptied.
func appendLast(edits []jsonedit.Edit, last *gjson.Result, value gjson.Result, empty string) []jsonedit.Edit {
	if last.Exists() {
		edits = append(edits, jsonedit.Replace(*last, []byte(empty)))
	}
	*last = value
	return edits
}

func appendChoice(edits []jsonedit.Edit, choice gjson.Result, position int, route catalog.Route) []jsonedit.Edit {
	if !choice.IsObject() {
		return edits
	}
	var index, finish, text, message gjson.Result
	jsonedit.ForEach(choice, func(key string, value gjson.Result) bool {
		switch key {
		case "index":
			index = value
		case "finish_reason":
			finish = value
		case "text":
			text = value
		case "message":
			message = value
		}
		return true
	})
	var members []string
	ensure := func(value gjson.Result, valid bool, name, otherwise string) {
		switch {
		case valid:
		case value.Exists():
			edits = append(edits, jsonedit.Replace(value, []byte(otherwise)))
		default:
			members = append(members, `"`+name+`":`+otherwise)
		}
	}
	if index.Type != gjson.Number {
		ensure(index, false, "index", strconv.Itoa(position))
	}
	ensure(finish, finish.Type == gjson.String, "finish_reason", `"stop"`)
	if route == catalog.Completions {
		ensure(text, text.Type == gjson.String, "text", `""`)
	} else {
		ensure(message, message.IsObject(), "message", `{"role":"assistant","content":""}`)
		if message.IsObject() {
			edits = appendMessage(edits, message)
		}
	}
	if len(members) > 0 {
		edits = append(edits, jsonedit.InsertMembers(choice, members...))
	}
	return edits
}

// appendMessage appends the edits for a message. Clients expect content to be present, as null if
// there are only tool calls.
func appendMessage(edits []jsonedit.Edit, message gjson.Result) []jsonedit.Edit {
	var role, content, calls gjson.Result
	jsonedit.ForEach(message, func(key string, value gjson.Result) bool {
		switch key {
		case "role":
			role = value
		case "content":
			content = value
		case "tool_calls":
			calls = value
		}
		return true
	})
	var members []string
	if !role.Exists() {
		members = append(members, `"role":"assistant"`)
	}
	empty := `""`
	if calls.IsArray() {
		empty = "null"
	}
	switch {
	case !content.Exists():
		members = append(members, `"content":`+empty)
	case content.Type == gjson.Null && !calls.IsArray():
		edits = append(edits, jsonedit.Replace(content, []byte(empty)))
	}
	if len(members) > 0 {
		edits = append(edits, jsonedit.InsertMembers(message, members...))
	}
	return edits
}

// The members of a usage object that break down its two token counts.
const promptDetails, completionDetails = "prompt_tokens_details", "completion_tokens_details"

// maxUsageMembers limits the members of a usage object, because each member may need an edit.
const maxUsageMembers = 100

// appendUsage appends the edits for a usage object. It adds missing members to the upstream's usage and sets the
// metered numbers. It replaces a usage that is too long, not an object or not plausible.
func appendUsage(edits []jsonedit.Edit, used gjson.Result, counts usage.Counts, route catalog.Route) []jsonedit.Edit {
	if !used.IsObject() || counts.Estimated > 0 {
		return append(edits, jsonedit.Replace(used, appendCounts(nil, counts, route)))
	}
	corrected, found := appendCorrections(edits, used, counts, route)
	if found.members > maxUsageMembers {
		return append(edits, jsonedit.Replace(used, appendCounts(nil, counts, route)))
	}
	edits = corrected
	var members []string
	if !found.total {
		members = append(members, `"total_tokens":`+strconv.FormatInt(billed(counts), 10))
	}
	if !found.cost && counts.Cost > 0 {
		members = append(members, `"cost":`+usage.Amount(counts.Cost))
	}
	if !found.prompt && route == catalog.Chat {
		members = append(members, `"`+promptDetails+`":{"cached_tokens":0}`)
	}
	if !found.completion && route == catalog.Chat {
		members = append(members, `"`+completionDetails+`":{"reasoning_tokens":0}`)
	}
	if len(members) > 0 {
		edits = append(edits, jsonedit.InsertMembers(used, members...))
	}
	return edits
}

// usageMembers says which members a usage object has. The fields prompt and completion are about the details.
type usageMembers struct {
	members                         int
	total, cost, prompt, completion bool
}

// appendCorrections reads at most one member more than maxUsageMembers.
func appendCorrections(
	edits []jsonedit.Edit, used gjson.Result, counts usage.Counts, route catalog.Route,
) ([]jsonedit.Edit, usageMembers) {
	var found usageMembers
	number := func(value gjson.Result, n int64) {
		if !isInteger(value, n) {
			edits = append(edits, jsonedit.Replace(value, strconv.AppendInt(nil, n, 10)))
		}
	}
	detail := func(details gjson.Result, name string, n int64) {
		switch value := jsonedit.Member(details, name); {
		case value.Exists():
			number(value, n)
		case route != catalog.Chat:
		case details.IsObject():
			edits = append(edits, jsonedit.InsertMembers(details, `"`+name+`":0`))
		default:
			edits = append(edits, jsonedit.Replace(details, []byte(`{"`+name+`":0}`)))
		}
	}
	jsonedit.ForEach(used, func(key string, value gjson.Result) bool {
		found.members++
		switch key {
		case "prompt_tokens":
			number(value, counts.PromptTokens)
		case "completion_tokens":
			number(value, counts.CompletionTokens)
		case "total_tokens":
			found.total = true
			number(value, billed(counts))
		case "cost":
			found.cost = true
			// A cost calculated from the row's price replaces the upstream's cost.
			if counts.Cost > 0 {
				edits = append(edits, jsonedit.Replace(value, []byte(usage.Amount(counts.Cost))))
			}
		case promptDetails:
			found.prompt = true
			detail(value, "cached_tokens", counts.CachedTokens)
		case completionDetails:
			found.completion = true
			detail(value, "reasoning_tokens", counts.ReasoningTokens)
		}
		return found.members <= maxUsageMembers
	})
	return edits, found
}

func appendCounts(out []byte, counts usage.Counts, route catalog.Route) []byte {
	out = strconv.AppendInt(append(out, `{"prompt_tokens":`...), counts.PromptTokens, 10)
	out = strconv.AppendInt(append(out, `,"completion_tokens":`...), counts.CompletionTokens, 10)
	out = strconv.AppendInt(append(out, `,"total_tokens":`...), billed(counts), 10)
	if counts.Cost > 0 {
		out = append(append(out, `,"cost":`...), usage.Amount(counts.Cost)...)
	}
	if route == catalog.Chat {
		out = append(out, `,"prompt_tokens_details":{"cached_tokens":`...)
		out = strconv.AppendInt(out, counts.CachedTokens, 10)
		out = append(out, `},"completion_tokens_details":{"reasoning_tokens":`...)
		out = strconv.AppendInt(out, counts.ReasoningTokens, 10)
		out = append(out, '}')
	}
	return append(out, '}')
}

// appendUsageChunk appends a chunk that contains only usage. id and created are JSON, or empty.
func appendUsageChunk(out []byte, id, created string, slug []byte, counts usage.Counts, route catalog.Route) []byte {
	object := answerObject(route)
	if route == catalog.Chat {
		object += ".chunk"
	}
	if id == "" {
		id = `""`
	}
	if created == "" {
		created = "0"
	}
	out = append(append(out, `{"id":`...), id...)
	out = append(append(append(out, `,"object":"`...), object...), `","created":`...)
	out = append(append(append(out, created...), `,"model":`...), slug...)
	out = appendCounts(append(out, `,"choices":[],"usage":`...), counts, route)
	return append(out, '}')
}

func answerObject(route catalog.Route) string {
	if route == catalog.Chat {
		return "chat.completion"
	}
	return "text_completion"
}

func answerID(route catalog.Route, requestID string) string {
	if route == catalog.Chat {
		return "chatcmpl-" + requestID
	}
	return "cmpl-" + requestID
}
