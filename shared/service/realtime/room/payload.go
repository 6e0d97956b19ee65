package room

// payloader splits VP8 frames into RTP payloads (RFC 7741, section 4.2) with a 15-bit picture ID. The library's
// payloader omits ID 0. Clients then freeze for three seconds, until they request a key frame.
type payloader struct{ picture uint16 }

const numberedHeader = 4

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
