package helper

// MaxPixels limits frames of any shape: 1920x1080, rounded up to whole macroblocks.
const MaxPixels = 1920 * 1088

// MaxFrame limits the size of a compressed input frame, in bytes.
const MaxFrame = 1 << 20

// The layout of the memory that server and helper share. Each area has one writer: the server
// writes FrameIn and PictureIn, the helper writes the others.
const (
	// maxPicture is in bytes. A frame that is one pixel high or wide has as many chroma bytes as luma bytes.
	maxPicture = (2*MaxPixels + 1<<12) &^ (1<<12 - 1)
	// MaxOut limits the size of an encoded frame, in bytes.
	MaxOut = 4 << 20

	FrameIn    = 0
	PictureOut = FrameIn + MaxFrame
	PictureIn  = PictureOut + maxPicture
	FrameOut   = PictureIn + maxPicture
	SharedSize = FrameOut + MaxOut

	MaxSide = 1<<14 - 1
)

const (
	DoNothing = iota
	DoDecode
	DoEncode
)

type Request struct {
	Do   uint32
	Size uint32
	// For the picture to encode. Bitrate is in kbit/s, Key is 0 or 1, and At is in nanoseconds.
	Width, Height, Bitrate, Key uint32
	At                          int64
}

// If a helper cannot continue, it writes the reason to standard error and exits.
const (
	StatusDone = iota
	StatusBroken
)

type Answer struct {
	Status uint32
	// The decoded picture's size, or 0.
	Width, Height uint32
	// Size is the encoded frame's size, in bytes.
	Size uint32
	// Took is the processor time of decoding, in microseconds.
	Took uint32
}

// The sizes of messages in the pipes, in bytes.
const RequestSize, AnswerSize = 32, 20

const descriptor = 3
