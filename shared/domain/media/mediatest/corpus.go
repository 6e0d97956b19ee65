package mediatest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Clip is a one-second video. It may consist of several parts of equal length.
type Clip struct {
	Name string
	Make func(t testing.TB) string
	// First and Last are ffmpeg's arguments for making the correct first and last pictures. If First is nil, ffmpeg
	// itself shows and plays the file correctly.
	First, Last []string
	// Tones has a frequency for each of the result's equal parts. It is empty for silence.
	Tones []float64
}

// Turned returns clips that are stored in all orientations.
func Turned() (clips []Clip) {
	for i, matrices := range [][4]int32{
		{1, 0, 0, 1}, {-1, 0, 0, 1}, {-1, 0, 0, -1}, {1, 0, 0, -1},
		{0, 1, 1, 0}, {0, 1, -1, 0}, {0, -1, -1, 0}, {0, -1, 1, 0},
	} {
		source, m := Drawn("testsrc2", "128x96", "1"), matrices
		clips = append(clips, Clip{Name: fmt.Sprint("orientation ", i+1), Make: func(t testing.TB) string {
			return Matrix(t, Write(t, slices.Concat(source, H264, []string{"a.mov"})...), m[0], m[1], m[2], m[3])
		}, First: slices.Concat(source, []string{"-vf", Orientations[i]})})
	}
	return clips
}

// Orientations are the ffmpeg filters for the Exif orientations, starting from 1.
var Orientations = []string{
	"null", "hflip", "hflip,vflip", "vflip",
	"transpose=cclock_flip", "transpose=clock", "transpose=clock_flip", "transpose=cclock",
}

const others = "smptebars,hue=h=120"

// Unusual returns clips with several tracks, and clips whose tracks change or need corrections.
func Unusual() []Clip {
	wide, half, silent := Drawn(Bars, "320x180", "1"), Drawn(Bars, "320x180", "0.5"), []float64(nil)
	changing := func(t testing.TB, name, codec string, args []string, sizes ...string) string {
		var parts []string
		for i, size := range sizes {
			source := []string{Bars, others}[i%2]
			parts = append(parts, Write(t, slices.Concat(Drawn(source, size, "1"), []string{"-c:v", codec}, args,
				[]string{"part" + filepath.Ext(name)})...))
		}
		return Join(t, name, parts...)
	}
	vpx := strings.Fields("-pix_fmt yuv420p -deadline realtime -cpu-used 8 -b:v 1M -g 25")
	cover := func(t testing.TB) string {
		return Write(t, slices.Concat(Drawn("testsrc", "64x64", "1"), strings.Fields("-frames:v 1 a.jpg"))...)
	}
	return []Clip{
		{"VP8 that changes its size twice", func(t testing.TB) string {
			return changing(t, "a.webm", "libvpx", vpx, "320x180", "160x90", "320x180", "160x90")
		}, wide, slices.Concat(Drawn(others, "160x90", "1"), []string{"-vf", "scale=320:180"}), silent},
		{"H.264 in a transport stream that becomes square and larger", func(t testing.TB) string {
			return changing(t, "a.ts", "libx264", H264, "320x180", "400x400")
		}, wide, slices.Concat(Drawn(others, "400x400", "1"), []string{"-vf", "scale=180:180,pad=320:180:-1:-1"}), silent},
		{"pictures of another size and pixels of another shape", func(t testing.TB) string {
			return Join(t, "a.ts", Write(t, slices.Concat(wide, H264, []string{"a.ts"})...),
				Write(t, slices.Concat(Drawn(others, "180x180", "1"), []string{"-vf", "setsar=16/9"}, H264, []string{"b.ts"})...))
		}, wide, slices.Concat(Drawn(others, "180x180", "1"), []string{"-vf", "scale=320:180"}), silent},
		{"wide pixels", func(t testing.TB) string {
			return Write(t, slices.Concat(Drawn(Bars+",setsar=16/9", "180x180", "1"), H264, []string{"a.mkv"})...)
		}, wide, wide, silent},
		{"an Ogg whose sound comes first", func(t testing.TB) string {
			return Write(t, slices.Concat(Tone("300", "1"), wide, strings.Fields("-map 0 -map 1 -b:v 4M a.ogv"))...)
		}, wide, wide, []float64{300}},
		{"a cover before the tracks", func(t testing.TB) string {
			clip := Write(t, slices.Concat(wide, Tone("300", "1"), H264, []string{"-shortest", "a.mp4"})...)
			return Write(t, "-i", cover(t), "-i", clip, "-map", "0", "-map", "1", "-c", "copy",
				"-disposition:v:0", "attached_pic", "a.mp4")
		}, wide, wide, []float64{300}},
		{"a second sound that is the default", func(t testing.TB) string {
			return Write(t, slices.Concat(wide, Tone("300", "1"), Tone("900", "1"), H264,
				strings.Fields("-map 0 -map 1 -map 2 -disposition:a:0 0 -disposition:a:1 default a.mkv"))...)
		}, wide, wide, []float64{900}},
		{"a first sound that no decoder knows", func(t testing.TB) string {
			return UnknownSound(t, Write(t, slices.Concat(wide, Tone("300", "1"), Tone("900", "1"), H264,
				strings.Fields("-map 0 -map 1 -map 2 -c:a:0 pcm_s16be -c:a:1 aac a.mov"))...))
		}, wide, wide, []float64{900}},
		{"a sound that no decoder knows", func(t testing.TB) string {
			return UnknownSound(t,
				Write(t, slices.Concat(wide, Tone("300", "1"), H264, strings.Fields("-c:a pcm_s16be a.mov"))...))
		}, wide, wide, silent},
		{"sound that changes its channels", func(t testing.TB) string {
			return ChangingSound(t, "ac3", "2", "6", "1")
		}, wide, wide, []float64{300, 600, 900}},
		{"MPEG-2 with two fields", func(t testing.TB) string {
			return Interlaced(t, "mpeg2video", "a.ts")
		}, Moved(1), Moved(23), silent},
		{"H.264 with two fields", func(t testing.TB) string {
			return Interlaced(t, "libx264", "a.mp4")
		}, Moved(1), Moved(23), silent},
		late("libx264", ".ts"), late("libx264", ".mp4"), late("mpeg2video", ".mkv"),
		{"VP9 with alpha", func(t testing.TB) string { return Holed(t, "libvpx-vp9") }, Filled, Filled, silent},
		{"turned, and later of another shape", func(t testing.TB) string {
			return Matrix(t, Write(t, "-i", changing(t, "a.ts", "libx264", H264, "320x180", "90x160"), "-c", "copy",
				"-tag:v", "avc3", "-bsf:v", "dump_extra", "a.mov"), 0, 1, -1, 0)
		}, slices.Concat(wide, []string{"-vf", "transpose=clock"}), slices.Concat(Drawn(others, "90x160", "1"),
			[]string{"-vf", "scale=102:180,pad=320:180:-1:-1,transpose=clock"}), silent},
		{"AAC that changes its channels in MP4", func(t testing.TB) string {
			return Write(t, "-i", ChangingSound(t, "aac", "1", "2"), "-c", "copy", "a.mp4")
		}, wide, wide, []float64{300, 600}},
		made("sound that ends early", "a.mp4", wide, []float64{300, 0}, wide, Tone("300", "0.5"), H264),
		made("a picture that ends early", "a.mp4", wide, []float64{300}, half, Tone("300", "1"), H264),
		made("a picture that begins late", "a.mp4", wide, []float64{300}, []string{"-itsoffset", "0.5"}, half, Tone("300", "1"), H264),
		made("60 pictures a second", "a.mp4", wide, silent, wide, H264, []string{"-r", "60"}),
		made("sound that begins late", "a.mov", wide, []float64{0, 600}, Drawn(Bars, "320x180", "2"),
			[]string{"-itsoffset", "1"}, Tone("600", "1"), H264),
		made("times that begin late", "a.mkv", wide, []float64{600}, []string{"-itsoffset", "10"}, wide,
			[]string{"-itsoffset", "10"}, Tone("600", "1"), H264, []string{"-copyts"}),
		{"a cut without a new key frame", func(t testing.TB) string {
			long := Write(t, slices.Concat(wide, Drawn(others, "320x180", "1"),
				strings.Fields("-filter_complex concat -pix_fmt yuv420p -c:v libx264 -g 99 a.mp4"))...)
			return Write(t, "-ss", "1.2", "-i", long, "-c", "copy", "a.mov")
		}, Drawn(others, "320x180", "1"), Drawn(others, "320x180", "1"), silent},
		{"joined broadcasts", func(t testing.TB) string {
			var all []byte
			for i, source := range []string{Bars, others} {
				content := read(t, Write(t, slices.Concat(Drawn(source, "320x180", "1"), Tone(strconv.Itoa(300*(i+1)), "1"), H264,
					[]string{"-output_ts_offset", strconv.Itoa(5000 * i), "a.ts"})...))
				all = append(all, content...)
			}
			return Noise(t, all, 0)
		}, wide, Drawn(others, "320x180", "1"), []float64{300, 600}},
		made("a gap", "a.mkv", wide, silent, wide, strings.Fields("-vf setpts='if(lt(N,12),N,N+375)/25/TB' -vsync vfr"), H264),
		made("full range", "a.mp4", wide, silent, wide,
			strings.Fields("-vf scale=out_range=pc -c:v libx264 -pix_fmt yuvj420p -color_range pc")),
		{"an animated WebP", func(t testing.TB) string {
			return AnimatedWebP(t, 96, 64, 32, 16, Image{Name: "a.webp", Width: 32, Height: 32}.Make(t),
				Image{Name: "a.webp", Width: 32, Height: 32, Source: "color=c=red"}.Make(t))
		}, placed("testsrc2"), placed("color=c=red"), silent},
	}
}

// placed is a small picture on white.
func placed(source string) []string {
	return slices.Concat(Drawn(source, "32x32", "1"), []string{"-vf", "pad=96:64:32:16:white"})
}

// made is a clip that one run of ffmpeg makes.
func made(name, file string, picture []string, tones []float64, args ...[]string) Clip {
	return Clip{name, func(t testing.TB) string {
		return Write(t, append(slices.Concat(args...), file)...)
	}, picture, picture, tones}
}

// late is a clip with progressive frames, then interlaced ones.
func late(codec, extension string) Clip {
	wide := Drawn(Bars, "320x180", "1")
	return Clip{"two fields after progressive pictures " + codec + extension, func(t testing.TB) string {
		return Join(t, "a"+extension, Write(t, slices.Concat(wide, H264, []string{"-c:v", codec, "a" + extension})...),
			Interlaced(t, codec, "b"+extension))
	}, wide, Moved(23), nil}
}
