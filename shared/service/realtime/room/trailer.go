package room

// trailerMark ends what a client appends to an encoded frame when it measures times
// (docs/contract/realtime.md#webrtc).
const trailerMark = "LKTS"

// splitTrailer parts a frame from what its client appended. The byte before the mark is
// the length of all of it, inverted.
func splitTrailer(frame []byte) (data, trailer []byte) {
	mark := len(frame) - len(trailerMark)
	if mark < 1 || string(frame[mark:]) != trailerMark {
		return frame, nil
	}
	length := int(frame[mark-1] ^ 0xff)
	if length <= len(trailerMark) || length > len(frame) {
		return frame, nil
	}
	return frame[:len(frame)-length], frame[len(frame)-length:]
}
