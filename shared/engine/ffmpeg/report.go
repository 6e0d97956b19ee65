package ffmpeg

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cutroom/shared/domain/media"
)

type probeReport struct {
	Format struct {
		Duration  string
		StartTime string `json:"start_time"`
	}
	Streams []stream
	Frames  []picture
}

type stream struct {
	CodecType    string `json:"codec_type"`
	CodecName    string `json:"codec_name"`
	AvgFrameRate string `json:"avg_frame_rate"`
	// RFrameRate is FFmpeg's guess of a rate that fits all times. It is used if the average is unknown.
	RFrameRate  string `json:"r_frame_rate"`
	Duration    string
	StartTime   string `json:"start_time"`
	FieldOrder  string `json:"field_order"`
	SampleFmt   string `json:"sample_fmt"`
	Disposition struct {
		Default     int
		AttachedPic int `json:"attached_pic"`
	}
	Tags struct {
		AlphaMode string `json:"alpha_mode"`
	}
	picture
}

type picture struct {
	Width, Height     int
	PixFmt            string     `json:"pix_fmt"`
	SampleAspectRatio string     `json:"sample_aspect_ratio"`
	ColorRange        string     `json:"color_range"`
	ColorSpace        string     `json:"color_space"`
	ColorTransfer     string     `json:"color_transfer"`
	ColorPrimaries    string     `json:"color_primaries"`
	SideData          []sideData `json:"side_data_list"`
}

// sideData contains a picture's rotation in degrees, and its display matrix, which may also mirror the picture.
type sideData struct {
	Rotation      float64
	DisplayMatrix string
}

// video describes the chosen video and audio tracks. decoded reports whether the picture could be decoded.
func (r probeReport) video(has coders) (info media.Info, decoded bool) {
	kinds := map[string][]stream{}
	for _, s := range r.Streams {
		if s.Disposition.AttachedPic == 0 {
			kinds[s.CodecType] = append(kinds[s.CodecType], s)
		}
	}
	if track, found := choose(kinds["video"], has); found {
		s := kinds["video"][track]
		info = s.info()
		info.PictureTrack = track
		info.FrameRate = ratio(s.AvgFrameRate, ratio(s.RFrameRate, 0))
		info.Duration = max(parseSeconds(r.Format.Duration), parseSeconds(s.Duration))
		for _, data := range s.SideData {
			if data.DisplayMatrix != "" {
				info.Orientation = orientation(data.DisplayMatrix)
				info.Tilted = info.Orientation == 0
			}
		}
		if ratio(s.SampleAspectRatio, 1) != 1 {
			info.StoredWidth = s.Width
		}
		info.Interlaced = min(s.Width, s.Height) >= media.LeastFields &&
			(slices.Contains([]string{"tt", "bb", "tb", "bt"}, s.FieldOrder) || slices.Contains(fielded, s.CodecName))
		if decoder := alphaDecoders[s.CodecName]; s.Tags.AlphaMode == "1" && has["decoder "+decoder] {
			info.Decoder, info.Alpha, info.PixelFormat = decoder, true, "yuva420p"
		}
	}
	sounds := kinds["audio"]
	info.SoundTrack, info.Audio = choose(sounds, has)
	info.SoundLost = len(sounds) > 0 && !info.Audio
	if info.Audio {
		sound := sounds[info.SoundTrack]
		info.SoundVaries = !steady(sound.CodecName)
		info.SoundLate = parseSeconds(sound.StartTime)-parseSeconds(r.Format.StartTime) > lateSound
	}
	return info, info.Width > 0 && info.Height > 0 && info.PixelFormat != ""
}

// choose returns the track that a player would play: the first decodable default track or, if there is none, the
// first decodable track. found is false if no track can be decoded.
func choose(tracks []stream, has coders) (track int, found bool) {
	best := 0
	for i, s := range tracks {
		score := s.Disposition.Default + 1
		if s.SampleFmt != "" && s.SampleFmt != "unknown" || s.PixFmt != "" && s.PixFmt != "unknown" {
			score += 2 // the probe has decoded this track
		}
		if has["codec "+s.CodecName] && score > best {
			track, best = i, score
		}
	}
	return track, best > 0
}

// lateSound is the delay above which sound counts as late. In most videos, a frame lasts longer.
const lateSound = 10 * time.Millisecond

// fielded lists codecs whose first frames do not show whether later ones are interlaced.
var fielded = []string{"h264", "mpeg2video", "mpeg4", "vc1", "mjpeg", "prores", "dvvideo"}

// orientation returns the Exif orientation of a matrix in ffprobe's format, or 0 if it rotates by another angle.
func orientation(matrix string) int {
	rows := strings.Fields(matrix) // a row is written as an offset and three numbers; use two of the numbers
	if len(rows) < 7 {
		return 0
	}
	signs := ""
	for _, i := range []int{1, 2, 5, 6} {
		number, _ := strconv.Atoi(rows[i])
		signs += string("-0+"[cmp.Compare(number, 0)+1])
	}
	return slices.Index([]string{"+00+", "-00+", "-00-", "+00-", "0++0", "0+-0", "0--0", "0-+0"}, signs) + 1
}

// FFmpeg's own decoders of these codecs ignore alpha.
var alphaDecoders = map[string]string{"vp8": "libvpx", "vp9": "libvpx-vp9"}

// steady reports whether the container declares the codec's sample rate and channels, so that they cannot change.
// Other codecs repeat them in each packet, and broadcasts change them in mid-stream.
func steady(codec string) bool {
	return slices.Contains([]string{"aac", "opus", "vorbis", "flac", "alac"}, codec) || strings.HasPrefix(codec, "pcm_")
}

// info describes a picture as displayed: rotated and with square pixels.
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

func hasAlpha(format string) bool {
	for _, prefix := range []string{"yuva", "rgba", "bgra", "argb", "abgr", "gbrap", "ya8", "ya16", "pal8"} {
		if strings.HasPrefix(format, prefix) {
			return true
		}
	}
	return false
}

// ratio parses "30000/1001" or "4:3". If the value is unknown, zero or infinite, it returns the parameter
// `otherwise`.
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

// parseSeconds parses "12.345000". It returns 0 if the value is unknown.
func parseSeconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return media.Seconds(s)
}
