package gateway

import (
	"bytes"
	"errors"
	"io"
)

const (
	// eventBuffer is the buffer that a stream begins with, in bytes: chunks are
	// some hundred, and there are thousands of streams.
	eventBuffer = 4 << 10
	// maxEvent bounds one event of a stream, in bytes.
	maxEvent = 4 << 20
	// maxEmptyReads is how often in a row a reader may give nothing.
	maxEmptyReads = 100
)

// errEventTooLong is the error of a stream with an event beyond maxEvent.
var errEventTooLong = errors.New("an event is longer than 4 MiB")

// event is one event of a stream; it is valid until the next is read.
type event struct {
	// name is what its "event:" line says, empty where there is none.
	name string
	// data is what its "data:" lines say, on one line.
	data []byte
}

// eventReader reads Server-Sent Events (the HTML standard, "Parsing an event
// stream"), wherever the transport has split them: lines end with CR, LF or
// both, comments and unknown fields are dropped, as are events without data. A
// last event counts also when the line or the empty line after it is missing,
// as some servers leave them out.
type eventReader struct {
	source io.Reader
	buf    []byte
	// buf[start:end] is unread; buf[start:line] are the whole lines of the event
	// under way, and buf[line:scanned] has been looked through for a line's end.
	start, line, scanned, end int
	// afterCR reports that a line has just ended with CR, whose LF may follow.
	afterCR bool
	// begun reports that the first line, which may have a byte order mark, is
	// behind.
	begun bool
	// err is what the source ended with.
	err error
	// joined holds the data of an event of several lines.
	joined []byte
}

// reset makes the reader read another source, with the buffer that it has.
func (r *eventReader) reset(source io.Reader) {
	*r = eventReader{source: source, buf: r.buf, joined: r.joined[:0]}
	if r.buf == nil {
		r.buf = make([]byte, eventBuffer)
	}
}

// next gives the next event. ok is false when the bytes that are there hold no
// whole event: fill has to read more. At the end of the stream err is io.EOF,
// or what the source broke with.
func (r *eventReader) next() (e event, ok bool, err error) {
	for {
		for r.scanned < r.end {
			c := r.buf[r.scanned]
			if r.afterCR {
				r.afterCR = false
				if c == '\n' {
					// The line ended at the CR before it.
					r.scanned++
					if r.line == r.scanned-1 {
						r.line = r.scanned
					}
					if r.start == r.scanned-1 {
						r.start = r.scanned
					}
					continue
				}
			}
			if c != '\n' && c != '\r' {
				i := lineEnd(r.buf[r.scanned:r.end])
				if i < 0 {
					r.scanned = r.end
					break
				}
				r.scanned += i
				c = r.buf[r.scanned]
			}
			r.afterCR = c == '\r'
			empty := r.scanned == r.line
			r.scanned++
			if !empty {
				r.line = r.scanned
				continue
			}
			block := r.buf[r.start:r.line]
			r.start, r.line = r.scanned, r.scanned
			if e, ok := r.parse(block); ok {
				return e, true, nil
			}
		}
		if r.err == nil {
			return event{}, false, nil
		}
		if rest := r.buf[r.start:r.end]; r.err == io.EOF && len(rest) > 0 {
			r.start, r.line, r.scanned = r.end, r.end, r.end
			if e, ok := r.parse(rest); ok {
				return e, true, nil
			}
		}
		return event{}, false, r.err
	}
}

// fill waits for more bytes; next then tells what has become of them.
func (r *eventReader) fill() {
	if r.err != nil {
		return
	}
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.line, r.scanned, r.end, r.start = r.line-r.start, r.scanned-r.start, r.end-r.start, 0
	}
	if r.end == len(r.buf) {
		if r.end >= maxEvent {
			r.err = errEventTooLong
			return
		}
		grown := make([]byte, 2*len(r.buf))
		copy(grown, r.buf)
		r.buf = grown
	}
	for range maxEmptyReads {
		n, err := r.source.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// parse reads the lines of one event; ok is false when it has no data.
func (r *eventReader) parse(block []byte) (e event, ok bool) {
	if !r.begun {
		r.begun = true
		block = bytes.TrimPrefix(block, []byte("\ufeff"))
	}
	several := false
	for len(block) > 0 {
		line := block
		if i := lineEnd(block); i >= 0 {
			line, block = block[:i], block[i+1:]
		} else {
			block = nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.name = string(value)
		case "data":
			if !ok {
				e.data, ok = value, true
				break
			}
			if !several {
				several = true
				r.joined = append(r.joined[:0], e.data...)
			}
			// Between lines stands a line feed, which in JSON is as good as a
			// space; an event goes out on one line.
			r.joined = append(append(r.joined, ' '), value...)
			e.data = r.joined
		}
	}
	return e, ok && len(e.data) > 0
}

// lineEnd gives where the first CR or LF is, -1 when there is none.
func lineEnd(text []byte) int {
	end := bytes.IndexByte(text, '\n')
	if end >= 0 {
		text = text[:end]
	}
	if cr := bytes.IndexByte(text, '\r'); cr >= 0 {
		return cr
	}
	return end
}
