package gateway

import (
	"bytes"
	"errors"
	"io"
)

const (
	// eventBuffer is the size of a stream's first buffer in bytes. Chunks have a few hundred bytes,
	// and there are thousands of streams.
	eventBuffer = 4 << 10
	// maxEvent limits one event of a stream, in bytes.
	maxEvent = 4 << 20
	// maxEmptyReads limits how often in a row a reader may return nothing.
	maxEmptyReads = 100
)

var errEventTooLong = errors.New("an event is longer than 4 MiB")

// event is one event of a stream. It is valid until the next is read.
type event struct {
	// name is the value of the "event:" line, or empty.
	name string
	// data is the value of the "data:" lines, on one line.
	data []byte
}

// eventReader reads Server-Sent Events (the HTML standard, "Parsing an event stream"). Lines end with CR,
// LF or both. It drops comments, unknown fields and events without data. Unlike in the standard, the last
// event counts even without its line end or the empty line, because some servers omit them.
type eventReader struct {
	source io.Reader
	// reserve is called before buf grows to a size in bytes beyond maxKeptBuffer. nil allows all.
	reserve func(size int) error
	buf     []byte
	// buf[start:end] is unread. buf[start:line] are the complete lines of the current event, and
	// buf[line:scanned] has no line end.
	start, line, scanned, end int
	// afterCR means that the last line ended with CR, so an LF may follow.
	afterCR bool
	// True after the first line, which may start with a byte order mark.
	begun bool
	err   error
	// joined has the data of an event of several lines.
	joined []byte
}

// reset changes the source and keeps the buffer.
func (r *eventReader) reset(source io.Reader) {
	*r = eventReader{source: source, buf: r.buf, joined: r.joined[:0]}
	if r.buf == nil {
		r.buf = make([]byte, eventBuffer)
	}
}

// next returns the next event. ok is false if the buffer has no whole event, and fill must read
// more. At the end of the stream err is io.EOF, or the error of the source.
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
		if size := 2 * len(r.buf); size > maxKeptBuffer && r.reserve != nil {
			if r.err = r.reserve(size); r.err != nil {
				return
			}
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

// parse reads the lines of one event. ok is false if it has no data.
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
			// The standard joins lines by a line feed. In JSON a space is equivalent, and an event
			// is forwarded as one line.
			r.joined = append(append(r.joined, ' '), value...)
			e.data = r.joined
		}
	}
	return e, ok && len(e.data) > 0
}

// lineEnd returns the index of the first CR or LF, or -1.
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
