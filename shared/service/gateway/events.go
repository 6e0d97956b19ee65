package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"cutroom/shared/service/gateway/jsonedit"
)

const (
	// eventBuffer is the initial size of a stream's buffer, in bytes. It is small because there may be thousands of
	// streams.
	eventBuffer   = 4 << 10
	maxEmptyReads = 100
)

var errEventTooLong = errors.New("an event of the stream is too large")

// An event is valid until the next one is read.
type event struct {
	name string
	data []byte
}

// eventReader reads Server-Sent Events (HTML standard, "Parsing an event stream"). Unlike the
// standard, it accepts a last event that lacks its line end or the final empty line.
type eventReader struct {
	source io.Reader
	// most is the maximum size of an event, in bytes.
	most int
	// reserve, if set, is called with the new size before buf grows beyond maxKeptBuffer.
	reserve func(size int) error
	buf     []byte
	// buf[start:end] is unread. buf[start:line] contains the complete lines of the current event.
	// buf[line:scanned] contains no line end.
	start, line, scanned, end int
	// afterCR means that the last line ended with CR, so the LF of a CRLF may follow.
	afterCR bool
	// started means that the first line, which may begin with a byte order mark, has been read.
	started bool
	err     error
	joined  []byte
	// parser is for the users of the events.
	parser jsonedit.Parser
}

func (r *eventReader) reset(source io.Reader, most int) {
	*r = eventReader{source: source, most: most, buf: r.buf, joined: r.joined[:0], parser: r.parser}
	if r.buf == nil {
		r.buf = make([]byte, eventBuffer)
	}
}

// next returns the next event. If ok is false, the buffer contains no complete event, and the
// caller must call fill. At the end of the stream, err is io.EOF or the source's error.
func (r *eventReader) next() (e event, ok bool, err error) {
	for {
		for r.scanned < r.end {
			c := r.buf[r.scanned]
			if r.afterCR {
				r.afterCR = false
				if c == '\n' {
					// The preceding CR already ended the line.
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
		if r.end >= r.most {
			r.err = fmt.Errorf("%w: it has more than %d bytes", errEventTooLong, r.most)
			return
		}
		size := min(2*len(r.buf), r.most)
		if size > maxKeptBuffer && r.reserve != nil {
			if r.err = r.reserve(size); r.err != nil {
				return
			}
		}
		grown := make([]byte, size)
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

// parse parses the lines of one event. ok is false if the event has no data.
func (r *eventReader) parse(block []byte) (e event, ok bool) {
	if !r.started {
		r.started = true
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
			// The standard joins lines with a line feed. In JSON, a space is equivalent and keeps
			// the forwarded event on one line.
			r.joined = append(append(r.joined, ' '), value...)
			e.data = r.joined
		}
	}
	return e, ok && len(e.data) > 0
}

// lineEnd returns the index of the first CR or LF, or -1.
func lineEnd(text []byte) int {
	// Search in windows of growing size. Otherwise, if thousands of lines end with CR, each search for LF would read
	// the entire rest of the text.
	for from, size := 0, 256; from < len(text); from, size = from+size, 2*size {
		window := text[from:min(from+size, len(text))]
		end := bytes.IndexByte(window, '\n')
		if end >= 0 {
			window = window[:end]
		}
		if cr := bytes.IndexByte(window, '\r'); cr >= 0 {
			end = cr
		}
		if end >= 0 {
			return from + end
		}
	}
	return -1
}
