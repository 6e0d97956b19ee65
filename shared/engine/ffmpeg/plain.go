package ffmpeg

import (
	"fmt"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
)

// Plain returns the filters that scale a picture and convert it to SDR RGB.
func Plain(info media.Info, to catalog.Size) string {
	size := fmt.Sprintf("%d:%d", to.Width, to.Height)
	if info.HDR() {
		return toneMap(info, size)
	}
	matrix := "auto"
	if (info.Matrix == "" || info.Matrix == "unknown") && max(info.Width, info.Height) >= 1280 {
		// Players assume BT.709 for a high-definition video that does not declare a matrix.
		matrix = "bt709"
	}
	return fmt.Sprintf("scale=%s:flags=bicubic:in_color_matrix=%s", size, matrix)
}

// toneMap is Plain for HDR. It scales first, which is cheaper, and then maps tones in linear light.
// White is at 203 cd/m2 (ITU-R BT.2408).
func toneMap(info media.Info, size string) string {
	known := func(value, otherwise string) string {
		if value == "" || value == "unknown" {
			return otherwise
		}
		return value
	}
	return fmt.Sprintf("setparams=color_trc=%s:color_primaries=%s:colorspace=%s,zscale=%s:f=bicubic:t=linear:npl=203,"+
		"format=gbrpf32le,zscale=p=bt709,tonemap=mobius:desat=0,zscale=t=bt709:r=pc",
		info.Transfer, known(info.Primaries, "bt2020"), known(info.Matrix, "bt2020nc"), size)
}
