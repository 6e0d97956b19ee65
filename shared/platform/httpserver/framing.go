package httpserver

import (
	"bytes"
	"errors"
	"strings"
)

// errFraming means that the end of a request is ambiguous (RFC 9112, sections 6.1 and 11.2), that
// its header has more than maxFields fields, or that a chunk-size line exceeds maxKeptLine bytes.
// If a read returns this error, net/http responds with 400 and closes the connection.
var errFraming = errors.New("httpserver: the end of a request is ambiguous")

// maxFields limits memory: for a header with very short fields, net/http uses 25 times the header's length.
const maxFields = 500

// maxKeptLine is how many bytes of an incomplete line are kept. If a start line is longer, only its last bytes are
// kept.
const maxKeptLine = 1 << 10

type part int

const (
	startLine part = iota
	fieldLine
	fixedBody
	chunkSize
	chunkData
	chunkEnd
	trailerLine
	// lost means that net/http itself rejects the stream.
	lost
)

// framing parses the requests on a connection just far enough to know where each ends. It rejects requests that
// net/http accepts although a proxy might see a different end. These have Transfer-Encoding together with
// Content-Length, Transfer-Encoding in HTTP/1.0, or folded fields. Lengths may consist only of digits.
type framing struct {
	part part
	// line is the beginning of the current line, from earlier reads.
	line []byte
	// left is the number of bytes still missing from a body or chunk.
	left uint64
	// Properties of the header read so far.
	isOld, hasLength, isChunked bool
	fields                      int
	length                      uint64
}

// follow returns how many of the next bytes may be forwarded: all of them, or only those before a faulty line.
func (f *framing) follow(read []byte) (int, error) {
	for at := 0; at < len(read); {
		if f.part == lost {
			return len(read), nil
		}
		if f.part == fixedBody || f.part == chunkData {
			n := min(f.left, uint64(len(read)-at))
			f.left -= n
			at += int(n)
			f.endBody()
			continue
		}
		end := bytes.IndexByte(read[at:], '\n')
		if end < 0 {
			if f.keep(read[at:]) {
				return at, errFraming
			}
			return len(read), nil
		}
		line := read[at : at+end]
		fault := false
		if len(f.line) > 0 {
			fault = f.keep(line)
			line = f.line
		}
		fault = fault || f.take(bytes.TrimSuffix(line, []byte("\r")))
		if f.line = f.line[:0]; fault {
			return at, errFraming
		}
		at += end + 1
	}
	return len(read), nil
}

// keep stores the part of an incomplete line that matters and reports whether the line is faulty.
func (f *framing) keep(text []byte) (fault bool) {
	const version = len(" HTTP/1.0\r")
	more := len(f.line) + len(text) - maxKeptLine
	if more <= 0 {
		f.line = append(f.line, text...)
		return false
	}
	switch f.part {
	case startLine:
		// Keep only the end of the line: the version, and whether the line is empty.
		if len(text) < version {
			text = append(f.line[max(0, len(f.line)-version):len(f.line):len(f.line)], text...)
		}
		f.line = append(f.line[:0], text[len(text)-version:]...)
		return false
	case chunkSize:
		return true
	}
	f.line = append(f.line, text[:len(text)-more]...)
	if f.part != fieldLine {
		return false
	}
	colon := bytes.IndexByte(f.line, ':')
	if colon < 0 {
		f.line[len(f.line)-1] = ':' // a field must have a colon; no relevant field has such a long name
		return false
	}
	name := f.line[:colon]
	return isField(name, "Content-Length") || isField(name, "Transfer-Encoding")
}

func (f *framing) endBody() {
	switch {
	case f.left > 0:
	case f.part == chunkData:
		f.part = chunkEnd
	default:
		f.part = startLine
	}
}

// take processes a line without its line break. It reports whether the line is faulty.
func (f *framing) take(line []byte) (fault bool) {
	switch f.part {
	case startLine:
		// net/http skips an empty line between requests.
		if len(line) > 0 {
			*f = framing{line: f.line, part: fieldLine, isOld: bytes.HasSuffix(line, []byte(" HTTP/1.0"))}
		}
	case fieldLine:
		if len(line) == 0 {
			f.endHeader()
			return false
		}
		return f.field(line)
	case chunkSize:
		f.beginChunk(line)
	case chunkEnd:
		f.part = chunkSize
		if len(line) > 0 {
			f.part = lost
		}
	case trailerLine:
		if len(line) == 0 {
			f.part = startLine
		}
	}
	return false
}

// field processes a header line and reports whether it is faulty.
func (f *framing) field(line []byte) (fault bool) {
	if f.fields++; f.fields > maxFields {
		return true
	}
	if line[0] == ' ' || line[0] == '\t' {
		return true // RFC 9112, section 5.2
	}
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		f.part = lost
		return false
	}
	switch name := line[:colon]; {
	case isField(name, "Content-Length"):
		length, ok := number(strings.Trim(string(line[colon+1:]), " \t"), 10)
		if !ok || f.hasLength && length != f.length {
			return true
		}
		f.hasLength, f.length = true, length
	case isField(name, "Transfer-Encoding"):
		f.isChunked = true
	}
	return f.isChunked && (f.hasLength || f.isOld)
}

func isField(name []byte, field string) bool {
	return len(name) == len(field) && strings.EqualFold(string(name), field)
}

func (f *framing) endHeader() {
	switch {
	case f.isChunked:
		f.part = chunkSize
	case f.length > 0:
		f.part, f.left = fixedBody, f.length
	default:
		f.part = startLine
	}
}

// RFC 9112, section 7.1.
func (f *framing) beginChunk(line []byte) {
	size, _, _ := strings.Cut(string(line), ";")
	length, ok := number(strings.TrimRight(size, " \t"), 16)
	switch {
	case !ok:
		f.part = lost
	case length == 0:
		f.part = trailerLine
	default:
		f.part, f.left = chunkData, length
	}
}

// number accepts only digits, without a sign.
func number(text string, base uint64) (n uint64, ok bool) {
	if text == "" || len(text) > 64 {
		return 0, false
	}
	for _, digit := range []byte(strings.ToLower(text)) {
		value := strings.IndexByte("0123456789abcdef"[:base], digit)
		if value < 0 || n > (1<<62)/base {
			return 0, false
		}
		n = n*base + uint64(value)
	}
	return n, true
}
