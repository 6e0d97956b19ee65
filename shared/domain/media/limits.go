package media

import (
	"fmt"
	"math"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
)

// Grace allows for the last audio packet of a video that was cut exactly at the limit.
const Grace = 500 * time.Millisecond

// These values limit the decoding time. Phones record 1080p at 240 frames per second, and 4096x2160
// at 120. MaxPixels allows five minutes of 4K at 60 frames per second.
const (
	MaxFrameRate = 480
	MaxPixelRate = 1_100_000_000
	MaxPixels    = 150_000_000_000
)

// CheckVideo rejects a video that exceeds the limits (docs/contract/media.md#input-limits). Unknown
// values pass. If the decoder later finds that they exceed a limit, the job fails.
//
// Errors: fault.Invalid, with a message for the sender.
func CheckVideo(info Info, limits catalog.Limits) error {
	if info.Duration > limits.VideoDuration+Grace {
		return fault.New(fault.Invalid, "The video is longer than %s.", words(limits.VideoDuration))
	}
	if info.Width > limits.VideoWidth || info.Height > limits.VideoHeight {
		return fault.New(fault.Invalid, "The video is larger than %dx%d pixels.", limits.VideoWidth, limits.VideoHeight)
	}
	return CheckRate(info)
}

// CheckRate rejects a video with more than MaxFrameRate frames or MaxPixelRate pixels per second, or with more
// than MaxPixels in total. A video shorter than a second is treated as one second long.
//
// Errors: as for [CheckVideo].
func CheckRate(info Info) error {
	rate := info.FrameRate * min(1, info.Duration.Seconds())
	pixels := float64(info.Width) * float64(info.Height) * rate
	all := pixels * max(1, info.Duration.Seconds())
	switch {
	case rate <= MaxFrameRate && pixels <= MaxPixelRate && all <= MaxPixels:
		return nil
	case all > MaxPixels:
		return fault.New(fault.Invalid, "The video's frames total %.0f gigapixels; the limit is %d. "+
			"Send a shorter or smaller video, or one with fewer frames.", math.Ceil(all/1e9), MaxPixels/1_000_000_000)
	}
	return fault.New(fault.Invalid, "The video has %.0f frames of %dx%d pixels per second, which is %.0f megapixels per second. "+
		"The limits are %d frames and %d megapixels per second.",
		math.Ceil(rate), info.Width, info.Height, math.Ceil(pixels/1e6), MaxFrameRate, MaxPixelRate/1_000_000)
}

func CheckImage(info Info, limits catalog.Limits) error {
	// A header may claim a width and height whose product overflows an integer.
	if float64(info.Width)*float64(info.Height) > float64(limits.ImagePixels) {
		return fault.New(fault.Invalid, "The image is larger than %g megapixels.", float64(limits.ImagePixels)/1e6)
	}
	return nil
}

// words formats a duration for people, as "5 minutes" instead of "5m0s".
func words(d time.Duration) string {
	switch {
	case d%time.Minute == 0:
		return count(int64(d/time.Minute), "minute")
	case d%time.Second == 0:
		return count(int64(d/time.Second), "second")
	}
	return d.String()
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
