package helper

// MaxPixels limits frames of any shape: 1920x1080, rounded up to whole macroblocks.
const MaxPixels = 1920 * 1088

// MaxFrame limits a compressed frame to decode, in bytes.
const MaxFrame = 1 << 20

// The memory that server and helper share. Each part has one writer: the server writes FrameIn
// and PictureIn, the helper the others.
const (
	// In bytes. A frame one pixel high or wide has as many bytes of chroma as of luma.
	maxPicture = (2*MaxPixels + 1<<12) &^ (1<<12 - 1)
	// MaxOut limits an encoded frame, in bytes.
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
	// The picture to encode: Bitrate is in kbit/s, Key is 0 or 1, and At is in nanoseconds.
	Width, Height, Bitrate, Key uint32
	At                          int64
}

// A helper that must stop writes the reason to its standard error and exits.
const (
	StatusDone = iota
	StatusBroken
)

type Answer struct {
	Status uint32
	// The size of the decoded picture, or 0.
	Width, Height uint32
	// Size is the size of the encoded frame, in bytes.
	Size uint32
}

// The sizes on the pipes, in bytes.
const RequestSize, AnswerSize = 32, 16

const descriptor = 3
