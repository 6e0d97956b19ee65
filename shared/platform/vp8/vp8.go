// Package vp8 decodes and encodes VP8 (RFC 6386) in separate processes.
//
// An untrusted video may compromise its decoder. So every [Codec] has a helper, which is this program in a
// [sandbox.Sandbox]. The helper loads libvpx and can only compute. The server writes compressed frames and
// pictures to memory shared with the helper, and sends requests through a pipe. If a helper crashes or takes too
// long, its session gets one error. The next call starts another helper, which continues from a key frame.
//
// Pictures are *image.YCbCr with 4:2:0 chroma subsampling, in video range: luma 16 to 235, chroma
// 16 to 240 (BT.601). Packages image/jpeg and image/color use the same type with the full range.
//
// libvpx is a system library that the server looks for at startup ([Find]). The program is built without cgo.
package vp8

import (
	"errors"
	"time"

	"cutroom/shared/platform/vp8/helper"
	"cutroom/shared/platform/vp8/libvpx"
)

// MaxPixels limits frames of any shape: 1920x1080, rounded up to whole macroblocks.
const MaxPixels = helper.MaxPixels

// MaxFrame limits the size of a compressed input frame, in bytes.
const MaxFrame = helper.MaxFrame

// A frame takes only milliseconds, but the machine may be busy.
const DefaultFrameTime = 5 * time.Second

var (
	// ErrBroken means that the frame is not VP8 or is damaged.
	ErrBroken = errors.New("vp8: the frame cannot be decoded")
	// ErrTooLarge means that a picture has more than MaxPixels pixels, or that a frame has more than MaxFrame bytes.
	ErrTooLarge = errors.New("vp8: the frame is too large")
	// ErrKeyFrame means that the frame depends on frames that the decoder does not have. Ask the
	// sender for a key frame.
	ErrKeyFrame = errors.New("vp8: a key frame is needed")
	// ErrLost means that the helper exited while working on the frame, or was killed after FrameTime. The next
	// helper needs a key frame, so ask the sender for one. The next encoded frame will be a key frame.
	ErrLost = errors.New("vp8: the codec stopped and must restart")
	// ErrFailed means that helpers cannot be started or keep exiting. The session should end.
	ErrFailed = errors.New("vp8: the codec has failed")
	ErrClosed = errors.New("vp8: the codec is closed")
)

// NeedsKeyFrame reports whether an error from Decode means that the sender must send a key frame.
// ErrFailed and ErrClosed end the stream instead.
func NeedsKeyFrame(err error) bool {
	return errors.Is(err, ErrBroken) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrKeyFrame) ||
		errors.Is(err, ErrLost)
}

type Frame struct {
	// Data is owned by the caller. It is empty if the encoder dropped the frame.
	Data []byte
	Key  bool
}

type Encoding = libvpx.Encoding
