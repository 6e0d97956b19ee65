package preview

import (
	"fmt"
	"strings"

	"cutroom/shared/engine"
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
	filters = append(filters, e.convert(input))
	if !input.Info.Alpha {
		return e.filter(strings.Join(append(filters, "setsar=1,format=gbrp"), ","), link)
	}
	link = e.filter(strings.Join(append(filters, "setsar=1,format=gbrap"), ","), link)
	return e.opaque(link)
}

// convert scales a picture to the result's size and brings its colours to
// ordinary RGB.
func (e *edit) convert(input engine.Input) string {
	info := input.Info
	size := fmt.Sprintf("%d:%d", e.size.Width, e.size.Height)
	if info.HDR() {
		known := func(value, otherwise string) string {
			if value == "" || value == "unknown" {
				return otherwise
			}
			return value
		}
		// Tone mapping works on linear light, after scaling, which is cheaper.
		// White is at 203 cd/m2 (ITU-R BT.2408).
		return fmt.Sprintf("setparams=color_trc=%s:color_primaries=%s:colorspace=%s,zscale=%s:f=bicubic:t=linear:npl=203,"+
			"format=gbrpf32le,zscale=p=bt709,tonemap=mobius:desat=0,zscale=t=bt709:r=pc",
			info.Transfer, known(info.Primaries, "bt2020"), known(info.Matrix, "bt2020nc"), size)
	}
	matrix := "auto"
	if (info.Matrix == "" || info.Matrix == "unknown") && max(info.Width, info.Height) >= 1280 {
		// What players assume for high definition without a declared matrix.
		matrix = "bt709"
	}
	return fmt.Sprintf("scale=%s:flags=bicubic:in_color_matrix=%s", size, matrix)
}

// opaque puts a picture with alpha on white.
func (e *edit) opaque(link string) string {
	ground := e.filter(fmt.Sprintf("color=c=white:s=%s:r=%d,format=gbrp", e.size, max(e.fps, 1)))
	return e.filter("overlay=format=gbrp:shortest=1,format=gbrp", ground, link)
}
