package gateway

import (
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

const (
	// maxKeptBuffer is how large a buffer may be to be kept for the next stream, in
	// bytes.
	maxKeptBuffer = 64 << 10
	// restTime and restReads bound what is read of an upstream's stream after its
	// end, so that its connection can be used again.
	restTime  = 50 * time.Millisecond
	restReads = 4
)

var errNoStream = errors.New("it answered with no stream of chunks")

// eventReaders keeps readers with their buffers.
var eventReaders = sync.Pool{New: func() any { return new(eventReader) }}

// relay passes a stream on, chunk by chunk, each as soon as it is there. While
// the caller takes its time the upstream has to wait: nothing is read ahead but
// what the reader's buffer holds.
func (c *completion) relay(answer reply, secret string) *failure {
	if kind, _, _ := strings.Cut(answer.contentType, ";"); strings.HasSuffix(strings.TrimSpace(kind), "json") {
		return c.notStreamed(answer, secret)
	}
	reader := eventReaders.Get().(*eventReader)
	reader.reset(answer.body)
	defer func() {
		reader.source = nil
		if len(reader.buf) <= maxKeptBuffer && cap(reader.joined) <= maxKeptBuffer {
			eventReaders.Put(reader)
		}
	}()
	relay := relay{completion: c, secret: secret, body: answer.body}
	c.tally.reset()
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
			if len(c.stream.out) < maxUnsent {
				continue
			}
		case err == io.EOF && relay.begun && (relay.finished || answer.framed):
			// It left the [DONE] out.
			return relay.finish(reader)
		case err != nil:
			f := brokenOff(err)
			f.elsewhere = !relay.begun && f.outcome == Failed
			return relay.fail(f)
		}
		if c.stream.send() != nil {
			return &failure{told: upstreamFailed(), outcome: Abandoned}
		}
		if ok {
			continue
		}
		// What is not passed on, such as comments, is silence to the caller.
		if now := time.Now(); relay.begun {
			if relay.passed {
				last, relay.passed = now, false
			}
			left := c.idle() - now.Sub(last)
			if left <= 0 {
				return relay.fail(brokenOff(errSilent))
			}
			answer.body.allow(left)
		}
		reader.fill()
	}
}

// notStreamed is an upstream that answers with one JSON text instead of a
// stream: an error, mostly.
func (c *completion) notStreamed(answer reply, secret string) *failure {
	body, err := io.ReadAll(io.LimitReader(answer.body, maxRefusal))
	if object, ok := parseObject(body); err == nil && ok && object.Get("error").IsObject() {
		c.tally.report(object.Get("usage"))
		return errorInside(object, secret)
	}
	return failed(errNoStream)
}

// relay is the passing on of one stream.
type relay struct {
	*completion
	secret string
	body   replyBody
	// begun reports that a chunk was there, finished that a choice gave the
	// reason of its end.
	begun, finished bool
	// passed reports that a chunk was passed on since the last wait.
	passed bool
	// id and created are those of the first chunk, for one that is made here.
	id, created string
	// usage is the last chunk with nothing but a usage, which goes out at the
	// end; told reports that the last chunk that was passed on had one.
	usage []byte
	told  bool
	edits [2]edit
}

// pass takes an event; done reports that it was the last.
func (r *relay) pass(e event) (done bool, f *failure) {
	if string(e.data) == "[DONE]" {
		if !r.begun {
			return false, failed(errNoStream)
		}
		return true, nil
	}
	e.data = repaired(e.data)
	chunk, ok := parseObject(e.data)
	if !ok {
		return false, failed(errors.New("it sent a chunk that is no JSON object"))
	}
	var choices, used gjson.Result
	broken, named := e.name == "error", false
	edits := r.edits[:0]
	chunk.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "choices":
			edits = appendLast(edits, &choices, value, "[]")
		case "usage":
			edits = appendLast(edits, &used, value, "null")
		case "error":
			broken = broken || value.Type != gjson.Null
		case "model":
			named = true
			edits = append(edits, replace(value, r.pool.slug))
		case "id":
			if !r.begun {
				r.id = strings.Clone(value.Raw)
			}
		case "created":
			if !r.begun {
				r.created = strings.Clone(value.Raw)
			}
		}
		return true
	})
	if broken {
		return false, errorInside(chunk, r.secret)
	}
	if !named {
		edits = append(edits, insertMembers(chunk, `"model":`+string(r.pool.slug)))
	}
	if !r.begun {
		r.begun, r.firstToken = true, r.Now()
		r.passed = true
	}
	none := true
	choices.ForEach(func(_, choice gjson.Result) bool {
		none = false
		if r.tally.addChoice(choice) {
			r.finished = true
		}
		return true
	})
	if used.IsObject() {
		believed := r.tally.report(used)
		if none {
			r.usage = appendEdited(r.usage[:0], e.data, edits)
			return false, nil
		}
		if believed {
			edits = appendCorrections(edits, used, r.tally.reported, r.route)
		} else {
			edits = append(edits, replace(used, []byte("null")))
		}
		r.told = believed
	} else {
		r.told = false
	}
	r.passed = true
	out := append(r.stream.out, "data: "...)
	out = appendEdited(out, e.data, edits)
	r.stream.out = append(out, "\n\n"...)
	return false, nil
}

// fail sends what was generated before the failure: once there was a chunk the
// answer is a stream, however close the failure came.
func (r *relay) fail(f *failure) *failure {
	if r.begun && r.stream.send() != nil {
		f.outcome = Abandoned
	}
	return f
}

// finish meters and ends the stream, and leaves the upstream's connection fit
// for the next call where that takes no time.
func (r *relay) finish(reader *eventReader) *failure {
	r.settle()
	if r.request.IncludeUsage {
		r.tellUsage()
	}
	if r.stream.finish(r.counts) != nil {
		return &failure{told: upstreamFailed(), outcome: Abandoned}
	}
	r.body.allow(restTime)
	for range restReads {
		if reader.err != nil {
			break
		}
		_, reader.err = reader.source.Read(reader.buf)
	}
	return nil
}

// tellUsage appends the chunk that the caller asked for: the upstream's, or one
// with the gateway's own count.
func (r *relay) tellUsage() {
	out := append(r.stream.out, "data: "...)
	switch {
	case len(r.usage) > 0 && r.counts.Estimated == 0:
		edits := r.edits[:0]
		chunk, _ := parseObject(r.usage) // it was one before the edits too
		chunk.ForEach(func(key, value gjson.Result) bool {
			if key.Str == "usage" {
				edits = appendUsage(edits, value, r.counts, r.route)
			}
			return true
		})
		out = appendEdited(out, r.usage, edits)
	case r.told && r.counts.Estimated == 0:
		return
	default:
		out = appendUsageChunk(out, r.id, r.created, r.pool.slug, r.counts, r.route)
	}
	r.stream.out = append(out, "\n\n"...)
}
