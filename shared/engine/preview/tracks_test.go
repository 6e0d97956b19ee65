package preview_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
)

const others = "smptebars,hue=h=120"

// unusual returns clips with several tracks, and clips whose tracks change or need corrections.
func unusual() []clip {
	wide, half, silent := mediatest.Drawn(mediatest.Bars, "320x180", "1"), mediatest.Drawn(mediatest.Bars, "320x180", "0.5"), []float64(nil)
	changing := func(t testing.TB, name, codec string, args []string, sizes ...string) string {
		var parts []string
		for i, size := range sizes {
			source := []string{mediatest.Bars, others}[i%2]
			parts = append(parts, mediatest.Write(t, slices.Concat(mediatest.Drawn(source, size, "1"), []string{"-c:v", codec}, args,
				[]string{"part" + filepath.Ext(name)})...))
		}
		return mediatest.Join(t, name, parts...)
	}
	vpx := strings.Fields("-pix_fmt yuv420p -deadline realtime -cpu-used 8 -b:v 1M -g 25")
	cover := func(t testing.TB) string {
		return mediatest.Write(t, slices.Concat(mediatest.Drawn("testsrc", "64x64", "1"), strings.Fields("-frames:v 1 a.jpg"))...)
	}
	return []clip{
		{"VP8 that changes its size twice", func(t testing.TB) string {
			return changing(t, "a.webm", "libvpx", vpx, "320x180", "160x90", "320x180", "160x90")
		}, wide, slices.Concat(mediatest.Drawn(others, "160x90", "1"), []string{"-vf", "scale=320:180"}), silent},
		{"H.264 in a transport stream that becomes square and larger", func(t testing.TB) string {
			return changing(t, "a.ts", "libx264", mediatest.H264, "320x180", "400x400")
		}, wide, slices.Concat(mediatest.Drawn(others, "400x400", "1"), []string{"-vf", "scale=180:180,pad=320:180:-1:-1"}), silent},
		{"pictures of another size and pixels of another shape", func(t testing.TB) string {
			return mediatest.Join(t, "a.ts", mediatest.Write(t, slices.Concat(wide, mediatest.H264, []string{"a.ts"})...),
				mediatest.Write(t, slices.Concat(mediatest.Drawn(others, "180x180", "1"), []string{"-vf", "setsar=16/9"}, mediatest.H264, []string{"b.ts"})...))
		}, wide, slices.Concat(mediatest.Drawn(others, "180x180", "1"), []string{"-vf", "scale=320:180"}), silent},
		{"wide pixels", func(t testing.TB) string {
			return mediatest.Write(t, slices.Concat(mediatest.Drawn(mediatest.Bars+",setsar=16/9", "180x180", "1"), mediatest.H264, []string{"a.mkv"})...)
		}, wide, wide, silent},
		{"an Ogg whose sound comes first", func(t testing.TB) string {
			return mediatest.Write(t, slices.Concat(mediatest.Tone("300", "1"), wide, strings.Fields("-map 0 -map 1 -b:v 4M a.ogv"))...)
		}, wide, wide, []float64{300}},
		{"a cover before the tracks", func(t testing.TB) string {
			clip := mediatest.Write(t, slices.Concat(wide, mediatest.Tone("300", "1"), mediatest.H264, []string{"-shortest", "a.mp4"})...)
			return mediatest.Write(t, "-i", cover(t), "-i", clip, "-map", "0", "-map", "1", "-c", "copy",
				"-disposition:v:0", "attached_pic", "a.mp4")
		}, wide, wide, []float64{300}},
		{"a second sound that is the default", func(t testing.TB) string {
			return mediatest.Write(t, slices.Concat(wide, mediatest.Tone("300", "1"), mediatest.Tone("900", "1"), mediatest.H264,
				strings.Fields("-map 0 -map 1 -map 2 -disposition:a:0 0 -disposition:a:1 default a.mkv"))...)
		}, wide, wide, []float64{900}},
		{"a first sound that no decoder knows", func(t testing.TB) string {
			return mediatest.UnknownSound(t, mediatest.Write(t, slices.Concat(wide, mediatest.Tone("300", "1"), mediatest.Tone("900", "1"), mediatest.H264,
				strings.Fields("-map 0 -map 1 -map 2 -c:a:0 pcm_s16be -c:a:1 aac a.mov"))...))
		}, wide, wide, []float64{900}},
		{"a sound that no decoder knows", func(t testing.TB) string {
			return mediatest.UnknownSound(t,
				mediatest.Write(t, slices.Concat(wide, mediatest.Tone("300", "1"), mediatest.H264, strings.Fields("-c:a pcm_s16be a.mov"))...))
		}, wide, wide, silent},
		{"sound that changes its channels", func(t testing.TB) string {
			return mediatest.ChangingSound(t, "ac3", "2", "6", "1")
		}, wide, wide, []float64{300, 600, 900}},
		{"MPEG-2 with two fields", func(t testing.TB) string {
			return mediatest.Interlaced(t, "mpeg2video", "a.ts")
		}, mediatest.Moved(1), mediatest.Moved(23), silent},
		{"H.264 with two fields", func(t testing.TB) string {
			return mediatest.Interlaced(t, "libx264", "a.mp4")
		}, mediatest.Moved(1), mediatest.Moved(23), silent},
		late("libx264", ".ts"), late("libx264", ".mp4"), late("mpeg2video", ".mkv"),
		{"VP9 with alpha", func(t testing.TB) string { return mediatest.Holed(t, "libvpx-vp9") }, mediatest.Filled, mediatest.Filled, silent},
		{"turned, and later of another shape", func(t testing.TB) string {
			return mediatest.Matrix(t, mediatest.Write(t, "-i", changing(t, "a.ts", "libx264", mediatest.H264, "320x180", "90x160"), "-c", "copy",
				"-tag:v", "avc3", "-bsf:v", "dump_extra", "a.mov"), 0, 1, -1, 0)
		}, slices.Concat(wide, []string{"-vf", "transpose=clock"}), slices.Concat(mediatest.Drawn(others, "90x160", "1"),
			[]string{"-vf", "scale=102:180,pad=320:180:-1:-1,transpose=clock"}), silent},
		{"AAC that changes its channels in MP4", func(t testing.TB) string {
			return mediatest.Write(t, "-i", mediatest.ChangingSound(t, "aac", "1", "2"), "-c", "copy", "a.mp4")
		}, wide, wide, []float64{300, 600}},
		made("sound that ends early", "a.mp4", wide, []float64{300, 0}, wide, mediatest.Tone("300", "0.5"), mediatest.H264),
		made("a picture that ends early", "a.mp4", wide, []float64{300}, half, mediatest.Tone("300", "1"), mediatest.H264),
		made("a picture that begins late", "a.mp4", wide, []float64{300}, []string{"-itsoffset", "0.5"}, half, mediatest.Tone("300", "1"), mediatest.H264),
		made("60 pictures a second", "a.mp4", wide, silent, wide, mediatest.H264, []string{"-r", "60"}),
		made("sound that begins late", "a.mov", wide, []float64{0, 600}, mediatest.Drawn(mediatest.Bars, "320x180", "2"),
			[]string{"-itsoffset", "1"}, mediatest.Tone("600", "1"), mediatest.H264),
		made("times that begin late", "a.mkv", wide, []float64{600}, []string{"-itsoffset", "10"}, wide,
			[]string{"-itsoffset", "10"}, mediatest.Tone("600", "1"), mediatest.H264, []string{"-copyts"}),
		{"a cut without a new key frame", func(t testing.TB) string {
			long := mediatest.Write(t, slices.Concat(wide, mediatest.Drawn(others, "320x180", "1"),
				strings.Fields("-filter_complex concat -pix_fmt yuv420p -c:v libx264 -g 99 a.mp4"))...)
			return mediatest.Write(t, "-ss", "1.2", "-i", long, "-c", "copy", "a.mov")
		}, mediatest.Drawn(others, "320x180", "1"), mediatest.Drawn(others, "320x180", "1"), silent},
		{"joined broadcasts", func(t testing.TB) string {
			var all []byte
			for i, source := range []string{mediatest.Bars, others} {
				content, _ := sniffed(t, mediatest.Write(t, slices.Concat(mediatest.Drawn(source, "320x180", "1"), mediatest.Tone(itoa(300*(i+1)), "1"), mediatest.H264,
					[]string{"-output_ts_offset", itoa(5000 * i), "a.ts"})...))
				all = append(all, content...)
			}
			return mediatest.Noise(t, all, 0)
		}, wide, mediatest.Drawn(others, "320x180", "1"), []float64{300, 600}},
		made("a gap", "a.mkv", wide, silent, wide, strings.Fields("-vf setpts='if(lt(N,12),N,N+375)/25/TB' -vsync vfr"), mediatest.H264),
		made("full range", "a.mp4", wide, silent, wide,
			strings.Fields("-vf scale=out_range=pc -c:v libx264 -pix_fmt yuvj420p -color_range pc")),
		{"an animated WebP", func(t testing.TB) string {
			return mediatest.AnimatedWebP(t, 96, 64, 32, 16, mediatest.Image{Name: "a.webp", Width: 32, Height: 32}.Make(t),
				mediatest.Image{Name: "a.webp", Width: 32, Height: 32, Source: "color=c=red"}.Make(t))
		}, placed("testsrc2"), placed("color=c=red"), silent},
	}
}

// placed is a small picture on white.
func placed(source string) []string {
	return slices.Concat(mediatest.Drawn(source, "32x32", "1"), []string{"-vf", "pad=96:64:32:16:white"})
}

// made is a clip that one run of ffmpeg makes.
func made(name, file string, picture []string, tones []float64, args ...[]string) clip {
	return clip{name, func(t testing.TB) string {
		return mediatest.Write(t, append(slices.Concat(args...), file)...)
	}, picture, picture, tones}
}

// late is a clip with progressive frames, then interlaced ones.
func late(codec, extension string) clip {
	wide := mediatest.Drawn(mediatest.Bars, "320x180", "1")
	return clip{"two fields after progressive pictures " + codec + extension, func(t testing.TB) string {
		return mediatest.Join(t, "a"+extension, mediatest.Write(t, slices.Concat(wide, mediatest.H264, []string{"-c:v", codec, "a" + extension})...),
			mediatest.Interlaced(t, codec, "b"+extension))
	}, wide, mediatest.Moved(23), nil}
}

func TestLooksSurviveSizeChange(t *testing.T) {
	part := func(size string) string {
		return mediatest.Write(t, slices.Concat(mediatest.Drawn(mediatest.Bars, size, "0.2"), mediatest.H264, []string{"a.ts"})...)
	}
	data := input(t, mediatest.Join(t, "a.ts", part("320x180"), part("160x90"), part("90x160")), false)
	for _, prompt := range []string{"vhs", "watercolor", "pencil sketch", "vintage film", "cyberpunk, pixel art"} {
		t.Run(prompt, func(t *testing.T) {
			spec := engine.Spec{
				Kind: catalog.Edit, Prompt: prompt, Seed: 1, Data: data, FPS: 20, Duration: data.Info.Duration, Size: box,
				Reference: input(t, reference, true),
			}
			checkVideo(t, run(t, spec), spec, false)
		})
	}
}

// A clip whose frames are damaged must fail soon, although the look draws a picture for every frame.
func TestClipWithoutFramesFailsSoon(t *testing.T) {
	path := mediatest.Write(t, slices.Concat(mediatest.Drawn(mediatest.Bars, "320x180", "1"), strings.Fields("-pix_fmt yuv420p -c:v libx265 -preset ultrafast a.mp4"))...)
	spec := small(t, "rain")
	spec.Data = input(t, path, false)
	mediatest.Change(t, path, func(movie []byte) bool {
		from, to := strings.Index(string(movie), "mdat")+4, strings.Index(string(movie), "moov")-4
		for i := from; i < to; i++ {
			movie[i] = 0xff
		}
		return from < to
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, _, err := attempt(t, ctx, spec, func(engine.Progress) {}); engine.AsError(err).Code != job.InvalidInput {
		t.Errorf("got %v, want an invalid input", err)
	}
}

func near(a, b []float64, most float64) bool {
	for i := range b {
		if math.Abs(a[i]-b[i]) > most {
			return false
		}
	}
	return len(a) == len(b)
}
