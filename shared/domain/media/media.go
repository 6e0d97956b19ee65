// Package media defines the accepted file types ([Type]) and reads properties from a file's header
// ([Inspect]). It runs no programs and reads only a small part of a file.
package media

import (
	"math"
	"time"
)

// Info describes a file's picture and sound. Zero means unknown. [Inspect] sets the size, the
// duration and Audio if the header contains them. ffprobe sets all fields.
type Info struct {
	// Width and Height are the size as displayed, in square pixels and after rotation.
	Width, Height int
	Duration      time.Duration
	Audio         bool
	FrameRate     float64 // average per second
	// PixelFormat is FFmpeg's name for the pixel format, such as "yuv420p10le".
	PixelFormat string
	Alpha       bool
	// These are FFmpeg's names for the color properties (ITU-T H.273), such as "bt2020".
	Primaries, Transfer, Matrix string
	// FullRange is true if samples use the full range of values, as in JPEG.
	FullRange bool

	// The fields below control how FFmpeg reads a video. Their zero values select the first tracks.

	// Tracks are numbered from 0. PictureTrack does not count attached pictures such as covers.
	PictureTrack, SoundTrack int
	// Decoder is set if FFmpeg's default decoder ignores alpha.
	Decoder string
	// StoredWidth is the width before the rotation, in the file's own, non-square pixels. It is 0 if
	// the pixels are square.
	StoredWidth int
	// Orientation is 2 to 8, as in Exif, if the frames must be mirrored or rotated by multiples of 90 degrees.
	Orientation int
	// Tilted is true if FFmpeg must rotate the frames by another angle.
	Tilted bool
	// Interlaced is true if frames may consist of two fields.
	Interlaced bool
	// SoundVaries is true if the sample rate or the channels may change.
	SoundVaries bool
	// SoundLate is true if the sound begins after the picture.
	SoundLate bool
	// SoundLost is true if the file has sound but none of it can be decoded.
	SoundLost bool
}

// LeastFields is the minimum width and height, in pixels, of frames that are deinterlaced.
const LeastFields = 8

// HDR reports whether the transfer function is PQ or HLG (ITU-R BT.2100).
func (i Info) HDR() bool { return i.Transfer == "smpte2084" || i.Transfer == "arib-std-b67" }

// Seconds converts a claimed number of seconds. It returns 0 if the number is not positive.
func Seconds(s float64) time.Duration {
	const most = float64(math.MaxInt64 / int64(time.Second))
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, most) * float64(time.Second))
}
