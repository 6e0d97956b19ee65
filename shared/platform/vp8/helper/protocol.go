package helper

// MaxPixels limits decoded and encoded pictures of any shape: 1920x1080, rounded up to whole macroblocks.
const MaxPixels = 1920 * 1088

// MaxFrame limits the compressed frame to decode, in bytes.
const MaxFrame = 1 << 20

// The memory that server and helper share. Each part has one writer: FrameIn and PictureIn are the
// server's, the others the helper's.
const (
	// maxPicture limits the memory of a picture. A picture one pixel high or wide has the same number
	// of bytes of chroma as of luma.
	maxPicture = (2*MaxPixels + 1<<12) &^ (1<<12 - 1)
	// MaxOut limits an encoded frame, in bytes.
	MaxOut = 4 << 20

	FrameIn    = 0
	PictureOut = FrameIn + MaxFrame
	PictureIn  = PictureOut + maxPicture
	FrameOut   = PictureIn + maxPicture
	SharedSize = FrameOut + MaxOut

	// MaxSide is the longest side of a VP8 frame.
	MaxSide = 1<<14 - 1
)

const (
	DoNothing = iota
	DoDecode
	DoEncode
)

type Request struct {
	Do uint32
	// Size is the size of the frame to decode, in bytes.
	Size uint32
	// Width, Height, Bitrate (kbit/s), Key (0 or 1) and At (nanoseconds) describe the picture to encode.
	Width, Height, Bitrate, Key uint32
	At                          int64
}

// How a request ended. A helper that must stop writes why to its standard error and ends.
const (
	StatusDone = iota
	StatusBroken
)

type Answer struct {
	Status uint32
	// Width and Height are the decoded picture's size, or 0.
	Width, Height uint32
	// Size is the size of the encoded frame, in bytes.
	Size uint32
}

// The sizes of both on the pipes, in bytes.
const RequestSize, AnswerSize = 32, 16

// descriptor is the shared memory in a helper.
const descriptor = 3
