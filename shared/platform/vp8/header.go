package vp8

// Header contains the fields in a frame's first bytes (RFC 6386, section 9.1).
type Header struct {
	// Only key frames have the other fields.
	Key           bool
	Width, Height int
}

const startCode = "\x9d\x01\x2a"

// Inspect returns false for an invalid frame.
func Inspect(frame []byte) (Header, bool) {
	if len(frame) < 3 {
		return Header{}, false
	}
	if frame[0]&1 == 1 {
		return Header{}, true
	}
	if len(frame) < 10 || string(frame[3:6]) != startCode {
		return Header{}, false
	}
	// The upper two bits of each dimension request scaling, which is left to the viewer.
	h := Header{
		Key:    true,
		Width:  (int(frame[6]) | int(frame[7])<<8) & 0x3fff,
		Height: (int(frame[8]) | int(frame[9])<<8) & 0x3fff,
	}
	return h, h.Width > 0 && h.Height > 0
}
