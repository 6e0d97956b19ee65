package room

// trailerMark is at the end of the data that a client appends to a frame (docs/contract/realtime.md#webrtc).
const trailerMark = "LKTS"

// splitTrailer separates a frame from the appended data. The byte before the mark is the inverted
// length of that data.
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
