package helper

// MaxPixels is the largest picture that is decoded or encoded, of any shape: that
// of 1920x1080, rounded up to whole macroblocks.
const MaxPixels = 1920 * 1088

// MaxFrame is the largest compressed frame that is decoded, in bytes.
const MaxFrame = 1 << 20

// The memory that server and helper share. Each part has one writer, by turns:
// FrameIn and PictureIn are the server's, the others the helper's.
const (
	// maxPicture is the memory that a picture takes at most: one that is a pixel
	// high or wide has as many bytes of chroma as of luma.
	maxPicture = (2*MaxPixels + 1<<12) &^ (1<<12 - 1)
	// MaxOut is the largest frame that is encoded, in bytes.
	MaxOut = 4 << 20

	FrameIn    = 0
	PictureOut = FrameIn + MaxFrame
	PictureIn  = PictureOut + maxPicture
	FrameOut   = PictureIn + maxPicture
	SharedSize = FrameOut + MaxOut

	// MaxSide is the longest side that a frame of VP8 can have.
	MaxSide = 1<<14 - 1
)

// What a helper is asked for.
const (
	DoNothing = iota
	DoDecode
	DoEncode
)

// Request asks a helper for one thing.
type Request struct {
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
	StatusDone = iota
	StatusBroken
)

// Answer is a helper's answer to a request.
type Answer struct {
	Status uint32
	// Width and Height are those of the picture that was decoded, 0 for none.
	Width, Height uint32
	// Size is that of the frame that was encoded, in bytes.
	Size uint32
}

// The sizes of the two on the pipes, in bytes.
const RequestSize, AnswerSize = 32, 16

// descriptor is that of the shared memory in a helper.
const descriptor = 3
