package room

// trailerMark ends the data that a client appends to an encoded frame to measure times
// (docs/contract/realtime.md#webrtc).
const trailerMark = "LKTS"

// splitTrailer splits a frame from the appended data. The byte before the mark is the total length
// of the data, inverted.
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
