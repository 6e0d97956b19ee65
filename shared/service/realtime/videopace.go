package realtime

import (
	"time"

	"golang.org/x/time/rate"

	"cutroom/shared/platform/vp8"
)

// maxPixelRate limits the decoded pixels per second of a session's video: the largest frames, 60 times a second, or
// small ones 240 times. A packet can hold a frame that takes milliseconds, so a limit of packets is not enough.
const maxPixelRate = 60 * vp8.MaxPixels

// A session's decoder may use decodeTime of processor time per second, and saves up maxDecodeTime, in microseconds. The
// work of a frame depends on more than its size.
const decodeTime, maxDecodeTime = 200_000, 1_000_000

// videoPace decides which frames of a video are decoded.
type videoPace struct {
	pixels, processor *rate.Limiter
	// size is the number of pixels of a frame. gap means that a frame that others depend on was dropped.
	size int
	gap  bool
}

func newVideoPace() *videoPace {
	return &videoPace{
		pixels: rate.NewLimiter(maxPixelRate, maxPixelRate), processor: rate.NewLimiter(decodeTime, maxDecodeTime),
	}
}

// extended returns a frame's side as the decoder processes it: in whole macroblocks, with a border.
func extended(side int) int { return (side+15)&^15 + 64 }

// admits returns false for frames above the limit and for later frames that depend on them.
func (p *videoPace) admits(frame []byte, now time.Time) bool {
	if header, ok := vp8.Inspect(frame); ok && header.Key {
		p.size, p.gap = min(max(extended(header.Width)*extended(header.Height), vp8.MaxPixels/4), vp8.MaxPixels), false
	}
	p.gap = p.gap || p.processor.TokensAt(now) < 0 || !p.pixels.AllowN(now, p.size)
	return !p.gap
}

// took records the processor time of an admitted frame.
func (p *videoPace) took(decoding time.Duration, now time.Time) {
	p.processor.ReserveN(now, int(min(decoding.Microseconds(), maxDecodeTime)))
}
