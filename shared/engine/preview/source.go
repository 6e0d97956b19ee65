package preview

import (
	"fmt"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

// upright prepares the input's picture for the operations: upright, at the result's size and frame rate, opaque and
// in sRGB. FFmpeg itself applies the rotation that a file requests.
func (e *edit) upright(link string, input engine.Input) string {
	var filters []string
	if e.fps > 0 {
		// Extend the video with its first and last frames, even if the sound is longer.
		filters = append(filters,
			fmt.Sprintf("fps=%d:start_time=0,tpad=stop=-1:stop_mode=clone,trim=end_frame=%d", e.fps, e.length()))
	}
	if e.step > 1 {
		filters = append(filters, fmt.Sprintf("select='not(mod(n,%d))'", e.step))
	}
	filters = append(filters, ffmpeg.Plain(input.Info, e.size))
	same := catalog.Size{Width: input.Info.Width, Height: input.Info.Height} == e.size && e.even()
	if matrix := matrixOf(input.Info); same && matrix != "" {
		e.luma = true
		filters = append(filters, "setsar=1,format=yuv420p,setparams=range=tv:colorspace="+matrix)
		return e.filter(strings.Join(filters, ","), link)
	}
	if !input.Info.Alpha {
		return e.filter(strings.Join(append(filters, "setsar=1,format=gbrp"), ","), link)
	}
	link = e.filter(strings.Join(append(filters, "setsar=1,format=gbrap"), ","), link)
	return e.opaque(link)
}

func (e *edit) opaque(link string) string {
	ground := e.filter(fmt.Sprintf("color=c=white:s=%s:r=%d:d=%.3f,format=gbrp", e.size, max(e.fps, 1), max(e.spec.Duration.Seconds(), 1)+1))
	return e.filter("overlay=format=gbrp:shortest=1,format=gbrp", ground, link)
}

// matrixOf returns the color matrix if decoded pictures can be used directly, otherwise "".
func matrixOf(info media.Info) string {
	if info.PixelFormat != "yuv420p" || info.HDR() || info.FullRange {
		return ""
	}
	switch info.Matrix {
	case "bt709", "smpte170m", "bt470bg":
		return info.Matrix
	case "", "unknown":
		return map[bool]string{true: "bt709", false: "smpte170m"}[max(info.Width, info.Height) >= 1280] // as Plain does
	}
	return ""
}
