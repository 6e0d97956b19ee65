package gateway

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/usage"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/apierror"
	"cutroom/shared/service/gateway/dialect"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/request"
)

// translation converts a call in a dialect that the upstreams do not support to a chat call. It
// fails if the call uses a feature that chat lacks.
type translation interface {
	// Request appends the chat request for a body that request.Parse has accepted.
	Request(out, body []byte, row *catalog.Inference) ([]byte, *apierror.Error)
	Answer(out []byte, completion gjson.Result, counts usage.Counts) ([]byte, error)
	// Chunk appends the events for a chunk of a stream. It fails if the dialect has no equivalent for the chunk.
	Chunk(out []byte, chunk gjson.Result) ([]byte, error)
	// End and Fail append a stream's final events, after success or after an error.
	End(out []byte, counts usage.Counts) []byte
	Fail(out []byte, e *apierror.Error) []byte
	// Held returns the number of buffered bytes that are repeated at the end of a stream.
	Held() int
}

func (c *completion) translate(body *[]byte, caller request.Caller, memory *reservation) *apierror.Error {
	model := c.request.Model
	call := dialect.Call{
		ID: httpserver.RequestID(c.r.Context()), Model: c.pool.Slug, Created: c.started.Unix(), Send: c.sendEvent,
		PromptTokens: c.promptSample,
	}
	if c.route == catalog.Responses {
		if c.keeping.id != "" {
			call.ID, call.Kept, call.Keep = c.keeping.id, true, c.keepResponse
		}
		call.Previous = c.keeping.previous
		c.translation = dialect.NewResponses(call)
	} else {
		c.translation = dialect.NewMessages(call)
	}
	size, before := len(*body)+len(*body)/4+512, memory.held
	// Escaped strings are copied while they are decoded, and tool calls grow when they are quoted.
	copied := 0
	if len(*body) > freeBody && (bytes.IndexByte(*body, '\\') >= 0 || bytes.Contains(*body, []byte("tool_"))) {
		copied = len(*body)
	}
	if size > freeBody {
		if apiErr := memory.acquire(c.r.Context(), int64(size+copied)); apiErr != nil {
			return apiErr
		}
	}
	chat, apiErr := c.translation.Request(make([]byte, 0, size), *body, model)
	memory.release(int64(copied))
	if apiErr != nil {
		return apiErr
	}
	if before > 0 && len(c.choice.rest) == 0 {
		*body = nil
		memory.release(before)
	}
	// Count the request's fields twice, because the translation keeps them and an event repeats them.
	if c.repeated = 2 * int64(c.translation.Held()); c.repeated > freeBody {
		if apiErr := c.kept.acquire(c.r.Context(), c.repeated); apiErr != nil {
			return apiErr
		}
	}
	caller.Translated = true
	c.request, apiErr = request.Parse(catalog.Chat, chat, caller)
	if apiErr != nil {
		return dialect.Renamed(c.route, apiErr)
	}
	return nil
}

// countTokens counts for one call of an account at a time, because a large prompt takes a quarter of a second.
func (c *completion) countTokens() *apierror.Error {
	release, apiErr := c.gateway.bodies.takeTurn(c.r.Context(), c.memory.account)
	if apiErr != nil {
		return apiErr
	}
	defer release()
	body := strconv.AppendInt([]byte(`{"input_tokens":`), c.promptTokens(), 10)
	writeJSON(c.w, http.StatusOK, append(body, '}'))
	return nil
}

func (c *completion) translateAnswer(text []byte) ([]byte, error) {
	chat, ok := jsonedit.ParseObject(text)
	if !ok {
		return nil, errNoCompletion // cannot happen: it was an object before the edits
	}
	return c.translation.Answer(make([]byte, 0, len(text)+len(text)/4+512), chat, c.counts)
}

func (c *completion) translateChunk(chunk gjson.Result) *failure {
	var err error
	if c.stream.out, err = c.translation.Chunk(c.stream.out, chunk); err != nil {
		return failed(err)
	}
	held := int64(c.translation.Held()) - c.repeated/2
	if held > maxAnswer {
		return failed(errAnswerTooLong)
	}
	// Acquire memory in large steps, because a stream has many chunks.
	if missing := translatedCopies*held + c.repeated - c.kept.held - maxKeptBuffer; missing > 0 {
		if apiErr := c.kept.acquire(c.r.Context(), missing+maxKeptBuffer); apiErr != nil {
			return &failure{apiErr: apiErr, outcome: Abandoned}
		}
	}
	return nil
}

// sendEvent sends a large output immediately, so that memory holds only one output at a time.
func (c *completion) sendEvent(out []byte) []byte {
	if c.stream.out = out; len(out) > maxUnsent {
		_ = c.stream.send() // the next send returns the same error
	}
	return c.stream.out
}

func (c *completion) appendEnd(out []byte) []byte {
	switch {
	case c.translation != nil:
		return c.translation.End(out, c.counts)
	case isTyped(c.route), c.route.IsAudio():
		return out // the last event has already been forwarded
	}
	return append(out, doneEvent...)
}

func (c *completion) appendFailure(out []byte, apiErr *apierror.Error) []byte {
	switch {
	case c.translation != nil:
		return c.translation.Fail(out, apiErr)
	case c.route == catalog.Messages:
		return dialect.AppendMessagesFailure(out, apiErr, httpserver.RequestID(c.r.Context()))
	case c.route == catalog.Responses:
		return dialect.AppendResponsesError(out, apiErr, c.sequence)
	}
	out = append(append(append(out, "data: "...), apiErr.JSON()...), "\n\n"...)
	return append(out, doneEvent...)
}
