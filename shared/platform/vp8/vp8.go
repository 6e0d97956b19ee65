// Package vp8 decodes and encodes VP8 (RFC 6386) in processes of their own.
//
// A video of a stranger may take over the decoder that reads it. So no byte of it
// is decoded in the server's process: every [Codec] has a helper, this program
// run again within a [fence.Fence], that loads libvpx and can do nothing but
// compute. The server writes compressed frames and pictures into memory that it
// shares with the helper, and tells it by a pipe what to do with them. A helper
// that crashes, or takes too long, costs its session one error; the next call
// starts another, which goes on from a key frame.
//
// Pictures are *image.YCbCr with the chroma subsampled 4:2:0, in the range that
// video has: luma 16 to 235, chroma 16 to 240 (BT.601). That is not the full
// range that package image/jpeg and package image/color mean by the same type.
//
// libvpx is a library of the system, found when the server starts ([Find]). The
// program is built without cgo.
package vp8

import (
	"errors"
	"time"

	"cutroom/shared/platform/vp8/helper"
	"cutroom/shared/platform/vp8/libvpx"
)

// MaxPixels is the largest picture that is decoded or encoded, of any shape: that
// of 1920x1080, rounded up to whole macroblocks.
const MaxPixels = helper.MaxPixels

// MaxFrame is the largest compressed frame that is decoded, in bytes.
const MaxFrame = helper.MaxFrame

// DefaultFrameTime is how long a helper may take for one frame before it is ended. It
// needs milliseconds, but the machine may be busy.
const DefaultFrameTime = 5 * time.Second

// The errors of a [Codec].
var (
	// ErrBroken means that the frame is not VP8 or is damaged.
	ErrBroken = errors.New("vp8: the frame cannot be decoded")
	// ErrTooLarge means that a picture has more than MaxPixels, or a frame more
	// than MaxFrame bytes.
	ErrTooLarge = errors.New("vp8: the frame is too large")
	// ErrKeyFrame means that the frame builds on others that the decoder does not
	// have. Ask the sender for a key frame.
	ErrKeyFrame = errors.New("vp8: a key frame is needed")
	// ErrLost means that the helper ended, or was ended after the library's FrameTime, while it
	// worked on the frame. The next call starts another helper: ask the sender for
	// a key frame. The next frame that is encoded is one.
	ErrLost = errors.New("vp8: the codec ended and has to start again")
	// ErrFailed means that helpers cannot be started, or end again and again. The
	// session should end.
	ErrFailed = errors.New("vp8: the codec fails")
	// ErrClosed means that the codec was closed.
	ErrClosed = errors.New("vp8: the codec is closed")
)

// NeedsKeyFrame reports whether, after this error of Decode, the sender is to be
// asked for a key frame. Of the other errors, ErrFailed and ErrClosed end the
// stream.
func NeedsKeyFrame(err error) bool {
	return errors.Is(err, ErrBroken) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrKeyFrame) ||
		errors.Is(err, ErrLost)
}

// Frame is what [Codec.Encode] makes of a picture.
type Frame struct {
	// Data is the compressed frame. It is the caller's. It is empty if the encoder
	// left the picture out.
	Data []byte
	// Key is true if the frame builds on no other.
	Key bool
}

// Encoding is how a picture is to be encoded.
type Encoding = libvpx.Encoding
