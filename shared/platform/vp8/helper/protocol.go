package helper

// MaxPixels is the maximum number of pixels in a decoded or encoded frame of any shape: 1920x1080,
// rounded up to whole macroblocks.
const MaxPixels = 1920 * 1088

// MaxFrame is the maximum size of a compressed frame to decode, in bytes.
const MaxFrame = 1 << 20

// The memory that server and helper share. Each part has one writer: the server writes FrameIn and
// PictureIn, the helper the others.
const (
	// maxPicture is the maximum memory for a frame. A frame that is one pixel high or wide has as
	// many bytes of chroma as of luma.
	maxPicture = (2*MaxPixels + 1<<12) &^ (1<<12 - 1)
	// MaxOut is the maximum size of an encoded frame, in bytes.
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

// The outcomes of a request. A helper that must stop writes the reason to its standard error and
// exits.
const (
	StatusDone = iota
	StatusBroken
)

type Answer struct {
	Status uint32
	// Width and Height are the size of the decoded picture, or 0.
	Width, Height uint32
	// Size is the size of the encoded frame, in bytes.
	Size uint32
}

// RequestSize and AnswerSize are the sizes on the pipes, in bytes.
const RequestSize, AnswerSize = 32, 16

// descriptor is the file descriptor of the shared memory in a helper.
const descriptor = 3
