package request

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"cutroom/shared/service/gateway/jsonedit"
)

const (
	// longText is the minimum length of a string that is cut out. Strings are cut out only if the
	// body has at least largeBody bytes.
	longText  = 128
	largeBody = 512
	// maxSkeleton limits the copied bytes. If more would remain, the complete body is parsed.
	maxSkeleton = 256 << 10
)

// skeleton is a body without the contents of its long strings, which are scanned eight bytes at a
// time. This is several times faster than the parser.
type skeleton struct {
	bytes []byte
	cuts  []cut
	// passed is how many cuts are before the place that was converted last.
	passed int
}

type cut struct {
	// at is the skeleton offset of the first byte after the cut. removed is the total number of
	// bytes removed before it.
	at, removed int
}

// cutOut builds the skeleton. It removes strings of the given minimum length, unless they may be names. It returns
// false if there is nothing to cut out or too much would remain.
func (s *skeleton) cutOut(body []byte, long int) bool {
	s.reset()
	copied, removed := 0, 0
	for i := 0; i < len(body); {
		quote := bytes.IndexByte(body[i:], '"')
		if quote < 0 {
			break
		}
		start := i + quote
		end := jsonedit.EndOfString(body, start)
		i = end + 1
		// Leave invalid strings to the parser, which either reports the error or accepts the string after all.
		if end == len(body) || end-start-1 < long || !isValue(body[:start]) || !isText(body[start+1:end]) {
			continue
		}
		if len(s.bytes)+start+1-copied > maxSkeleton {
			s.reset()
			return false
		}
		s.bytes = append(s.bytes, body[copied:start+1]...)
		copied, removed = end, removed+end-start-1
		s.cuts = append(s.cuts, cut{len(s.bytes), removed})
	}
	if len(s.cuts) == 0 || len(s.bytes)+len(body)-copied > maxSkeleton {
		s.reset()
		return false
	}
	s.bytes = append(s.bytes, body[copied:]...)
	return true
}

// original converts an offset in the skeleton to an offset in the body. The place should be near the last one.
func (s *skeleton) original(place int) int {
	for s.passed < len(s.cuts) && s.cuts[s.passed].at < place {
		s.passed++
	}
	for s.passed > 0 && s.cuts[s.passed-1].at >= place {
		s.passed--
	}
	if s.passed == 0 {
		return place
	}
	return place + s.cuts[s.passed-1].removed
}

func (s *skeleton) reset() {
	s.bytes, s.cuts, s.passed = s.bytes[:0], s.cuts[:0], 0
	if cap(s.bytes)+cap(s.cuts) > maxReaderBuffer {
		*s = skeleton{}
	}
}

// isValue reports whether the preceding bytes prove that a string is not a member's name.
func isValue(before []byte) bool {
	for i := len(before) - 1; i >= 0; i-- {
		switch c := before[i]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c == ':' || c == '['
		}
	}
	return false
}

// isText reports whether the inside of a string is valid. It returns false for four-digit escapes, which it does not
// check.
func isText(inside []byte) bool {
	for rest := inside; ; {
		slash := bytes.IndexByte(rest, '\\')
		if slash < 0 {
			inside = skipPlain(inside)
			return !hasControl(inside) && utf8.Valid(inside)
		}
		if !isShortEscape(rest[slash+1]) {
			return false
		}
		rest = rest[slash+2:]
	}
}

// highs marks the highest bit of each byte of a word. spaces is a word of spaces.
const (
	highs  = 0x8080808080808080
	spaces = 0x2020202020202020
)

// skipPlain skips blocks of ASCII characters without control characters.
func skipPlain(text []byte) (rest []byte) {
	for ; len(text) >= 32; text = text[32:] { // the processor handles four words in parallel
		a, b := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
		c, d := binary.LittleEndian.Uint64(text[16:]), binary.LittleEndian.Uint64(text[24:])
		// Subtracting a space sets the highest bit of a control character.
		if ((a-spaces)|a|(b-spaces)|b|(c-spaces)|c|(d-spaces)|d)&highs != 0 {
			break
		}
	}
	return text
}

func hasControl(text []byte) bool {
	for ; len(text) >= 8; text = text[8:] {
		// A mark that is only due to a borrow is above the mark of a control character.
		if a := binary.LittleEndian.Uint64(text); (a-spaces)&^a&highs != 0 {
			return true
		}
	}
	for _, c := range text {
		if c < ' ' {
			return true
		}
	}
	return false
}

func isShortEscape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	}
	return false
}
