package ffmpeg

import (
	"math"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/media"
)

// probeReport is the requested part of ffprobe's JSON output.
type probeReport struct {
	Format  struct{ Duration string }
	Streams []struct {
		CodecType    string `json:"codec_type"`
		AvgFrameRate string `json:"avg_frame_rate"`
		// RFrameRate is FFmpeg's guess of a rate that can express all times, for an unknown
		// average.
		RFrameRate  string `json:"r_frame_rate"`
		Duration    string
		Disposition struct {
			AttachedPic int `json:"attached_pic"`
		}
		picture
	}
	Frames []picture
}

// picture is ffprobe's report of a video track or of a frame.
type picture struct {
	Width, Height     int
	PixFmt            string                       `json:"pix_fmt"`
	SampleAspectRatio string                       `json:"sample_aspect_ratio"`
	ColorRange        string                       `json:"color_range"`
	ColorSpace        string                       `json:"color_space"`
	ColorTransfer     string                       `json:"color_transfer"`
	ColorPrimaries    string                       `json:"color_primaries"`
	SideData          []struct{ Rotation float64 } `json:"side_data_list"`
}

// video describes the first video track that is not known to be a cover
// picture, and reports whether its pictures could be decoded.
func (r probeReport) video() (info media.Info, decoded bool) {
	found, audio := false, false
	for _, stream := range r.Streams {
		switch {
		case stream.CodecType == "audio":
			audio = true
		case stream.CodecType == "video" && stream.Disposition.AttachedPic == 0 && !found:
			found = true
			info = stream.info()
			info.FrameRate = ratio(stream.AvgFrameRate, ratio(stream.RFrameRate, 0))
			info.Duration = max(parseSeconds(r.Format.Duration), parseSeconds(stream.Duration))
		}
	}
	info.Audio = audio
	return info, info.Width > 0 && info.Height > 0 && info.PixelFormat != ""
}

// info describes a picture as displayed: with square pixels, rotated.
func (p picture) info() media.Info {
	info := media.Info{
		Width: p.Width, Height: p.Height,
		PixelFormat: p.PixFmt,
		Alpha:       hasAlpha(p.PixFmt),
		Primaries:   p.ColorPrimaries,
		Transfer:    p.ColorTransfer,
		Matrix:      p.ColorSpace,
		FullRange:   p.ColorRange == "pc",
	}
	aspect := ratio(p.SampleAspectRatio, 1)
	info.Width = max(1, int(math.Round(float64(p.Width)*aspect)))
	for _, data := range p.SideData {
		if quarters := math.Abs(data.Rotation) / 90; math.Mod(math.Round(quarters), 2) == 1 {
			info.Width, info.Height = info.Height, info.Width
		}
	}
	return info
}

// hasAlpha reports whether a pixel format has alpha, by FFmpeg's naming.
func hasAlpha(format string) bool {
	for _, prefix := range []string{"yuva", "rgba", "bgra", "argb", "abgr", "gbrap", "ya8", "ya16", "pal8"} {
		if strings.HasPrefix(format, prefix) {
			return true
		}
	}
	return false
}

// ratio parses "30000/1001" or "4:3", and returns otherwise if it is unknown,
// zero or not finite.
func ratio(text string, otherwise float64) float64 {
	above, below, ok := strings.Cut(strings.Replace(text, ":", "/", 1), "/")
	if !ok {
		return otherwise
	}
	a, errA := strconv.ParseFloat(above, 64)
	b, errB := strconv.ParseFloat(below, 64)
	if errA != nil || errB != nil || !(a > 0) || !(b > 0) || math.IsInf(a/b, 0) {
		return otherwise
	}
	return a / b
}

// parseSeconds parses "12.345000", and returns 0 for an unknown value.
func parseSeconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return media.Seconds(s)
}
