package room

// payloader parts frames of VP8 into payloads of RTP (RFC 7741, section 4.2). Every picture
// has its number, in 15 bits. The library leaves out the number 0, and to libwebrtc a picture
// without a number belongs to none with one: whoever saw the first picture of a room, or one
// in 32768, saw the next after three seconds, when it asked for a key frame.
type payloader struct{ picture uint16 }

// numberedHeader is the length of a payload's header, in bytes.
const numberedHeader = 4

// Payload is for the library.
func (p *payloader) Payload(most uint16, frame []byte) (payloads [][]byte) {
	part := int(most) - numberedHeader
	if part <= 0 || len(frame) == 0 {
		return nil
	}
	const extended, numbered, long, start = 0x80, 0x80, 0x80, 0x10
	first := byte(extended | start)
	for len(frame) > 0 {
		n := min(part, len(frame))
		payload := append(make([]byte, 0, numberedHeader+n), first, numbered, long|byte(p.picture>>8), byte(p.picture))
		payloads = append(payloads, append(payload, frame[:n]...))
		frame, first = frame[n:], extended
	}
	p.picture = (p.picture + 1) & 0x7fff
	return payloads
}
