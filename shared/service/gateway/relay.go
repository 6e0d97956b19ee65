package gateway

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/dialect"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/upstream"
)

const (
	// maxKeptBuffer is the size in bytes of the largest buffer that is kept for another stream.
	maxKeptBuffer = 64 << 10
	// eventCopies is the maximum number of copies of a large event in memory at a time.
	eventCopies = 3
	// drainTime and drainReads limit how long to read after the end of a stream so that the connection can be reused.
	drainTime  = 50 * time.Millisecond
	drainReads = 4
)

var errNoStream = errors.New("the response is not a stream of chunks")

var eventReaders = sync.Pool{New: func() any { return new(eventReader) }}

// relay forwards a stream chunk by chunk. It reads ahead by only one buffer, so a slow caller slows
// down the upstream.
func (c *completion) relay(answer upstream.Reply, secret string) *failure {
	if kind, _, _ := strings.Cut(answer.ContentType, ";"); strings.HasSuffix(strings.TrimSpace(kind), "json") {
		return c.notStreamed(answer, secret)
	}
	reader := eventReaders.Get().(*eventReader)
	reader.reset(answer.Body, c.request.Model.MaxEvent)
	memory := c.reservation()
	defer memory.releaseAll()
	reader.reserve = func(size int) error {
		if apiErr := memory.acquire(c.r.Context(), eventCopies*int64(size)-memory.held); apiErr != nil {
			return apiErr
		}
		return nil
	}
	defer func() {
		reader.source, reader.reserve = nil, nil
		if len(reader.buf) <= maxKeptBuffer && cap(reader.joined) <= maxKeptBuffer {
			eventReaders.Put(reader)
		}
	}()
	relay := relay{completion: c, secret: secret, body: answer.Body, parser: &reader.parser}
	c.counter.reset()
	var last time.Time
	for {
		e, ok, err := reader.next()
		switch {
		case ok:
			done, f := relay.pass(e)
			if f != nil {
				return relay.fail(f)
			}
			if done {
				return relay.finish(reader)
			}
			// The first event is sent immediately, even if others have arrived.
			if c.stream.hasStarted() && len(c.stream.out) < maxUnsent {
				continue
			}
		case err == io.EOF && relay.started && (relay.finished || answer.Framed) && !isTyped(c.request.Route):
			// The upstream omitted the final [DONE].
			return relay.finish(reader)
		case err != nil:
			return relay.fail(cutShort(err))
		}
		if c.stream.send() != nil {
			return &failure{apiErr: upstreamFailed(), outcome: Abandoned}
		}
		if ok {
			continue
		}
		// Dropped events such as comments count as silence, because the caller does not see them.
		if now := time.Now(); relay.started {
			if relay.passed {
				last, relay.passed = now, false
			}
			left := c.idle() - now.Sub(last)
			if left <= 0 {
				return relay.fail(cutShort(upstream.ErrSilent))
			}
			answer.Body.Allow(left)
		}
		reader.fill()
	}
}

// notStreamed returns the failure for an upstream that responded with one JSON value instead of a
// stream, usually an error.
func (c *completion) notStreamed(answer upstream.Reply, secret string) *failure {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if object, ok := jsonedit.ParseObject(body); err == nil && ok && object.Get("error").IsObject() {
		c.counter.report(object.Get("usage"))
		f := errorInAnswer(object, secret)
		f.tryNext = f.outcome == Failed
		return f
	}
	f := failed(errNoStream)
	f.tryNext = true
	return f
}

type relay struct {
	completion *completion
	secret     string
	body       upstream.Body
	parser     *jsonedit.Parser
	// started means that a chunk has arrived; finished means that a choice has a finish reason.
	started, finished bool
	// passed means that a chunk has been forwarded since the last wait.
	passed bool
	// id and created are from the first chunk. Chunks made by the gateway repeat them.
	id, created string
	// usage is the last chunk with usage and without choices, which is sent at the end.
	usage []byte
	edits [2]jsonedit.Edit
	// calls contains the function calls of each choice, and numbered is their total number.
	calls    map[int64]*dialect.ToolCalls
	numbered int
	// prompted is the usage at the start of a Messages stream. The usage at its end may lack the prompt's tokens.
	prompted string
}

func (r *relay) pass(e event) (done bool, f *failure) {
	if isTyped(r.completion.request.Route) || r.completion.route.IsAudio() {
		return r.passTyped(e)
	}
	if string(e.data) == "[DONE]" {
		if !r.started {
			return false, failed(errNoStream)
		}
		return true, nil
	}
	e.data = jsonedit.ValidUTF8(e.data)
	chunk, ok := r.parser.ParseObject(e.data)
	if !ok {
		return false, failed(errors.New("the upstream sent a chunk that is not a JSON object"))
	}
	edits, choices, used, broken := r.readChunk(chunk)
	if broken || e.name == "error" {
		return false, errorInAnswer(chunk, r.secret)
	}
	outside := len(edits) // the number of edits outside the choices
	none, ends, calls := true, false, false
	jsonedit.ForEach(choices, func(_ string, choice gjson.Result) bool {
		none = false
		finished, called := r.completion.counter.addChoice(choice)
		ends, calls = ends || finished, calls || called
		return true
	})
	if calls && r.completion.translation == nil {
		edits = r.numberCalls(edits, choices)
	}
	if len(edits) > maxEdits {
		return false, failed(errManyEdits)
	}
	if !r.started {
		r.started, r.completion.firstToken = true, r.completion.gateway.config.Now()
		r.passed = true
	}
	r.finished = r.finished || ends
	if used.IsObject() {
		believed, _ := r.completion.counter.report(used)
		if none && (r.completion.translation != nil || !r.completion.request.IncludeUsage) {
			return false, nil
		}
		corrected, found := appendCorrections(edits, used, r.completion.counter.reported, r.completion.request.Route)
		believed = believed && found.members <= maxUsageMembers
		if none {
			r.usage = jsonedit.Append(r.usage[:0], e.data, edits)
			return false, nil
		}
		switch {
		case believed && !ends:
			edits = corrected
		case believed && len(edits) < maxEdits:
			emptied := slices.Concat(edits[:outside], []jsonedit.Edit{jsonedit.Replace(choices, []byte("[]"))})
			r.usage = jsonedit.Append(r.usage[:0], e.data, emptied)
			fallthrough
		default:
			edits = append(edits, jsonedit.Replace(used, []byte("null")))
		}
	}
	r.passed = true
	if r.completion.translation != nil {
		return false, r.completion.translateChunk(chunk)
	}
	out := append(r.completion.stream.out, "data: "...)
	out = jsonedit.Append(out, e.data, edits)
	r.completion.stream.out = append(out, "\n\n"...)
	return false, nil
}

// numberCalls appends the edits that give parallel function calls different indexes, because some
// servers send index 0 for all.
func (r *relay) numberCalls(edits []jsonedit.Edit, choices gjson.Result) []jsonedit.Edit {
	jsonedit.ForEach(choices, func(_ string, choice gjson.Result) bool {
		of := choice.Get("index").Int()
		jsonedit.ForEach(choice.Get("delta.tool_calls"), func(_ string, element gjson.Result) bool {
			index := element.Get("index")
			if index.Type != gjson.Number {
				return true
			}
			call := r.calls[of].Find(index.Int(), element)
			if call == nil && r.numbered < dialect.MaxCalls {
				call = r.addCall(of, index.Int(), element)
			}
			if call != nil && call.Number != index.Int() {
				edits = append(edits, jsonedit.Replace(index, strconv.AppendInt(nil, call.Number, 10)))
			}
			return len(edits) <= maxEdits
		})
		return len(edits) <= maxEdits
	})
	return edits
}

func (r *relay) addCall(choice, index int64, element gjson.Result) *dialect.ToolCall {
	if r.calls == nil {
		r.calls = map[int64]*dialect.ToolCalls{}
	}
	if r.calls[choice] == nil {
		r.calls[choice] = &dialect.ToolCalls{}
	}
	r.numbered++
	return r.calls[choice].Add(index, element)
}

// readChunk returns a chunk's choices, its usage, and the edits that set the caller's model name.
// broken means that the chunk contains an error.
func (r *relay) readChunk(chunk gjson.Result) (edits []jsonedit.Edit, choices, used gjson.Result, broken bool) {
	named := false
	edits = r.edits[:0]
	jsonedit.ForEach(chunk, func(key string, value gjson.Result) bool {
		switch key {
		case "choices":
			edits = appendLast(edits, &choices, value, "[]")
		case "usage":
			edits = appendLast(edits, &used, value, "null")
		case "error":
			broken = broken || value.Type != gjson.Null
		case "model":
			named = true
			edits = append(edits, jsonedit.Replace(value, r.completion.pool.Slug))
		case "id":
			if !r.started {
				r.id = strings.Clone(value.Raw)
			}
		case "created":
			if !r.started {
				r.created = strings.Clone(value.Raw)
			}
		}
		return len(edits) <= maxEdits
	})
	if !named {
		edits = append(edits, jsonedit.InsertMembers(chunk, `"model":`+string(r.completion.pool.Slug)))
	}
	return edits, choices, used, broken
}

// fail sends the text that was generated before the failure. Another upstream may be tried only
// before the first chunk.
func (r *relay) fail(f *failure) *failure {
	f.tryNext = !r.started && f.outcome == Failed
	if r.started && r.completion.stream.send() != nil {
		f.outcome = Abandoned
	}
	return f
}

// finish meters and ends the stream. It also briefly drains the upstream's connection, so that it can be reused.
func (r *relay) finish(reader *eventReader) *failure {
	r.completion.settle()
	r.completion.release()
	if r.completion.request.IncludeUsage {
		r.writeUsage()
	}
	r.completion.stream.out = r.completion.appendEnd(r.completion.stream.out)
	if r.completion.finishStream(!r.body.Ended()) != nil {
		return &failure{apiErr: upstreamFailed(), outcome: Abandoned}
	}
	r.body.Allow(drainTime)
	for range drainReads {
		if reader.err != nil {
			break
		}
		_, reader.err = reader.source.Read(reader.buf)
	}
	return nil
}

// writeUsage appends the usage chunk: the upstream's, or one with the gateway's own count.
func (r *relay) writeUsage() {
	out := append(r.completion.stream.out, "data: "...)
	switch {
	case len(r.usage) > 0 && r.completion.counts.Estimated == 0:
		edits := r.edits[:0]
		chunk, _ := jsonedit.ParseObject(r.usage) // cannot fail: it was an object before the edits
		jsonedit.ForEach(chunk, func(key string, value gjson.Result) bool {
			if key == "usage" {
				edits = appendUsage(edits, value, r.completion.counts, r.completion.request.Route)
			}
			return true
		})
		out = jsonedit.Append(out, r.usage, edits)
	default:
		out = appendUsageChunk(out, r.id, r.created, r.completion.pool.Slug, r.completion.counts, r.completion.request.Route)
	}
	r.completion.stream.out = append(out, "\n\n"...)
}
