package vp8

// Header is what the first bytes of a frame say of it (RFC 6386, section 9.1).
type Header struct {
	// Key is true if the frame builds on no other. The other fields are those of
	// key frames.
	Key bool
	// Width and Height are the picture's size in pixels.
	Width, Height int
}

// startCode is in every key frame.
const startCode = "\x9d\x01\x2a"

// Inspect reads the header of a frame. It reports false for what is no frame of
// VP8.
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
	// The upper two bits of each side ask for scaling, which is left to whoever
	// shows the picture.
	h := Header{
		Key:    true,
		Width:  (int(frame[6]) | int(frame[7])<<8) & 0x3fff,
		Height: (int(frame[8]) | int(frame[9])<<8) & 0x3fff,
	}
	return h, h.Width > 0 && h.Height > 0
}
