// Package media defines the accepted kinds of files ([Type]) and reads size and length from a
// file's header ([Inspect]). Package sniff detects the kind of a file. Both ignore names and
// declared types, run no programs and read little of a file, so they also suit a Lambda.
package media

import (
	"math"
	"time"
)

// Info holds the known properties of a file's picture and sound. Zero means unknown. [Inspect]
// sets the size, the duration and Audio if the header contains them. ffprobe sets everything.
type Info struct {
	// Width and Height are in pixels as displayed, with square pixels and after rotation.
	Width, Height int
	// Duration is 0 for a still image.
	Duration time.Duration
	Audio    bool
	// FrameRate is the average number of frames per second.
	FrameRate float64
	// PixelFormat is FFmpeg's name for the format, such as "yuv420p10le".
	PixelFormat string
	Alpha       bool
	// Primaries, Transfer and Matrix are FFmpeg's names for the colour properties (ITU-T H.273),
	// such as "bt2020", "smpte2084" and "bt2020nc".
	Primaries, Transfer, Matrix string
	// FullRange reports whether samples use the full range of their bits, as in JPEG.
	FullRange bool

	// The other fields control how FFmpeg reads a video. Their zero values select the first tracks.

	// PictureTrack and SoundTrack are the selected tracks, counted from 0. PictureTrack does not
	// count attached pictures such as covers.
	PictureTrack, SoundTrack int
	// Decoder is the video decoder to use if FFmpeg's default decoder ignores alpha.
	Decoder string
	// StoredWidth is in the file's own pixels. It is 0 if they are square or Turned is true.
	StoredWidth int
	// Turned reports whether FFmpeg must rotate or mirror the frames.
	Turned bool
	// Interlaced reports whether frames may consist of two fields.
	Interlaced bool
	// SoundVaries reports whether the sample rate or the channels of the sound may change.
	SoundVaries bool
	// SoundLost reports whether the file has sound, but none of it can be decoded.
	SoundLost bool
}

// HDR reports whether the transfer function is PQ or HLG (ITU-R BT.2100). Such a picture must be
// tone-mapped for an ordinary display.
func (i Info) HDR() bool { return i.Transfer == "smpte2084" || i.Transfer == "arib-std-b67" }

// Seconds converts a claimed number of seconds. It returns 0 if it is not a positive number, and
// at most the longest duration.
func Seconds(s float64) time.Duration {
	const most = float64(math.MaxInt64 / int64(time.Second))
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, most) * float64(time.Second))
}
