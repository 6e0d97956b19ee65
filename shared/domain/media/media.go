// Package media says which kinds of files are accepted ([Type]), and what the header
// of a file says about size and length ([Inspect]). Package sniff tells the kind of a
// file. Both trust neither names nor declared types, never run a program, and read
// little of a file, so that they suit a Lambda as well as a server.
package media

import (
	"math"
	"time"
)

// Info is what is known of a file's picture and sound. A zero value means
// unknown. [Inspect] fills the size, the duration and Audio if the header has
// them; a probe by ffprobe fills everything.
type Info struct {
	// Width and Height are in pixels, as displayed: with square pixels, after
	// a rotation that the file asks for.
	Width, Height int
	// Duration is how long the file plays; it is 0 for a still image.
	Duration time.Duration
	// Audio reports whether there is an audio track.
	Audio bool
	// FrameRate is the average number of frames per second.
	FrameRate float64
	// PixelFormat is FFmpeg's name of the decoded pictures' format, such as
	// "yuv420p10le".
	PixelFormat string
	// Alpha reports whether the decoded pictures have an alpha channel.
	Alpha bool
	// Primaries, Transfer and Matrix are FFmpeg's names of the colour
	// properties (ITU-T H.273), such as "bt2020", "smpte2084" and "bt2020nc".
	Primaries, Transfer, Matrix string
	// FullRange reports whether samples use the full range of their bits, as in
	// JPEG, if that is known.
	FullRange bool
}

// HDR reports whether the picture has a high dynamic range: its transfer
// function is PQ or HLG (ITU-R BT.2100), so it must be tone-mapped for an
// ordinary display.
func (i Info) HDR() bool { return i.Transfer == "smpte2084" || i.Transfer == "arib-std-b67" }

// Seconds returns the duration of a number of seconds that a file claims: 0 if
// it is not positive or not a number, and at most what a duration can hold.
func Seconds(s float64) time.Duration {
	const most = float64(math.MaxInt64 / int64(time.Second))
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, most) * float64(time.Second))
}
