package preview

import (
	"fmt"
	"strings"

	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

// source prepares the input's picture for the operations: upright, at the
// result's size and frame rate, opaque, in sRGB colours. FFmpeg itself rotates
// pictures that ask for it.
func (e *edit) source(link string, input engine.Input) string {
	var filters []string
	if e.fps > 0 {
		// The first picture is extended to the start and the last one to the
		// end, even if the sound is longer.
		filters = append(
			filters, fmt.Sprintf("fps=%d:start_time=0,tpad=stop=-1:stop_mode=clone,trim=end_frame=%d", e.fps, e.length()),
		)
	}
	filters = append(filters, ffmpeg.Plain(input.Info, e.size))
	if !input.Info.Alpha {
		return e.filter(strings.Join(append(filters, "setsar=1,format=gbrp"), ","), link)
	}
	link = e.filter(strings.Join(append(filters, "setsar=1,format=gbrap"), ","), link)
	return e.opaque(link)
}

// opaque puts a picture with alpha on white.
func (e *edit) opaque(link string) string {
	ground := e.filter(fmt.Sprintf("color=c=white:s=%s:r=%d,format=gbrp", e.size, max(e.fps, 1)))
	return e.filter("overlay=format=gbrp:shortest=1,format=gbrp", ground, link)
}
