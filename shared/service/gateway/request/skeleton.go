package request

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"
	"unicode/utf8"

	"cutroom/shared/service/gateway/jsonedit"
)

const (
	// longText is the minimum length of a string that is cut out. Strings are cut out only if the
	// body has at least largeBody bytes.
	longText  = 1 << 10
	largeBody = 8 << 10
	// maxSkeleton limits the copied bytes. If more would remain, the complete body is parsed.
	maxSkeleton = 256 << 10
)

// skeleton is a body without the contents of its long strings, which are scanned eight bytes at a
// time. This is several times faster than the parser.
type skeleton struct {
	bytes []byte
	cuts  []cut
}

type cut struct {
	// at is the skeleton offset of the first byte after the cut. removed is the total number of
	// bytes removed before it.
	at, removed int
}

// cutOut builds the skeleton. It removes strings of the given minimum length, unless they may be names. It returns
// false if there is nothing to cut out or too much would remain.
func (s *skeleton) cutOut(body []byte, long int) bool {
	s.bytes, s.cuts = s.bytes[:0], s.cuts[:0]
	copied, removed := 0, 0
	for i := 0; i < len(body); {
		quote := bytes.IndexByte(body[i:], '"')
		if quote < 0 {
			break
		}
		start := i + quote
		end, valid := endOfText(body, start+1)
		if !valid {
			// Leave the string to the parser, which either reports the error or accepts the string after all.
			end = jsonedit.EndOfString(body, start)
		}
		i = end + 1
		if !valid || end-start-1 < long || !isValue(body[:start]) {
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

// original converts an offset in the skeleton to an offset in the body.
func (s *skeleton) original(place int) int {
	before := sort.Search(len(s.cuts), func(i int) bool { return s.cuts[i].at >= place })
	if before == 0 {
		return place
	}
	return place + s.cuts[before-1].removed
}

func (s *skeleton) reset() {
	s.bytes, s.cuts = s.bytes[:0], s.cuts[:0]
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

// Each constant is a word that repeats one byte eight times.
const (
	lows    = 0x0101010101010101
	highs   = 0x8080808080808080
	quotes  = lows * '"'
	slashes = lows * '\\'
	spaces  = lows * ' '
)

// special returns a word in which the highest bit of a byte is set if the byte is a quote, a backslash, a control
// character or not ASCII. Bytes above the lowest such byte may be marked by mistake.
func special(word uint64) uint64 {
	quote, slash := word^quotes, word^slashes
	return ((quote-lows)&^quote | (slash-lows)&^slash | (word-spaces)&^word | word) & highs
}

// endOfText returns the index of the quote that ends the string whose text starts at i. valid is
// false if the text is invalid or has a four-digit escape, which is not checked here.
func endOfText(body []byte, i int) (end int, valid bool) {
	for {
		for i+32 <= len(body) { // the processor handles four words in parallel
			words := body[i : i+32]
			if special(binary.LittleEndian.Uint64(words))|special(binary.LittleEndian.Uint64(words[8:]))|
				special(binary.LittleEndian.Uint64(words[16:]))|special(binary.LittleEndian.Uint64(words[24:])) != 0 {
				break
			}
			i += 32
		}
		for ; i+8 <= len(body); i += 8 {
			if found := special(binary.LittleEndian.Uint64(body[i:])); found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
		}
		if i >= len(body) {
			return 0, false
		}
		switch c := body[i]; {
		case c == '"':
			return i, true
		case c == '\\':
			if i+1 >= len(body) || !isShortEscape(body[i+1]) {
				return 0, false
			}
			i += 2
		case c < ' ':
			return 0, false
		case c < utf8.RuneSelf:
			i++ // fewer than eight bytes remain
		default:
			r, size := utf8.DecodeRune(body[i:])
			if r == utf8.RuneError && size == 1 {
				return 0, false
			}
			i += size
		}
	}
}

func isShortEscape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	}
	return false
}
