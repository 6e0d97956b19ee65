package vp8

// The memory that server and helper share. Each part has one writer, by turns:
// frameIn and pictureIn are the server's, the others the helper's.
const (
	// maxPicture is the memory that a picture takes at most: one that is a pixel
	// high or wide has as many bytes of chroma as of luma.
	maxPicture = (2*MaxPixels + 1<<12) &^ (1<<12 - 1)
	// maxOut is the largest frame that is encoded, in bytes.
	maxOut = 4 << 20

	frameIn    = 0
	pictureOut = frameIn + MaxFrame
	pictureIn  = pictureOut + maxPicture
	frameOut   = pictureIn + maxPicture
	sharedSize = frameOut + maxOut

	// maxSide is the longest side that a frame of VP8 can have.
	maxSide = 1<<14 - 1
)

// What a helper is asked for.
const (
	doNothing = iota
	doDecode
	doEncode
)

// request asks a helper for one thing.
type request struct {
	Do uint32
	// Size is that of the frame to decode, in bytes.
	Size uint32
	// Width, Height, Bitrate (kbit/s), Key (0 or 1) and At (nanoseconds) are of the
	// picture to encode.
	Width, Height, Bitrate, Key uint32
	At                          int64
}

// How a request ended. A helper that can do no more says so on its standard error and
// ends.
const (
	statusDone = iota
	statusBroken
)

// answer is a helper's answer to a request.
type answer struct {
	Status uint32
	// Width and Height are those of the picture that was decoded, 0 for none.
	Width, Height uint32
	// Size is that of the frame that was encoded, in bytes.
	Size uint32
}

// The sizes of the two on the pipes, in bytes.
const requestSize, answerSize = 32, 16

// descriptor is that of the shared memory in a helper.
const descriptor = 3
