package preview_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
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

const (
	bars   = "smptebars"
	others = "smptebars,hue=h=120"
)

// drawn returns ffmpeg arguments for a source filter with a size, such as "320x180", and a length
// in seconds, at 25 frames per second.
func drawn(source, size, seconds string) []string {
	name, rest, more := strings.Cut(source, ",")
	if more {
		rest = "," + rest
	}
	separator := "="
	if strings.Contains(name, "=") {
		separator = ":"
	}
	return []string{"-f", "lavfi", "-i", name + separator + "s=" + size + ":r=25:d=" + seconds + rest}
}

func tone(hertz, seconds string) []string {
	return []string{"-f", "lavfi", "-i", "sine=f=" + hertz + ":r=48000:d=" + seconds}
}

func write(t *testing.T, args ...string) string {
	t.Helper()
	last := len(args) - 1
	path := filepath.Join(t.TempDir(), args[last])
	mediatest.Run(t, append(args[:last:last], path)...)
	return path
}

// join concatenates files into one file without re-encoding.
func join(t *testing.T, name string, paths ...string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(script, []byte("file '"+strings.Join(paths, "'\nfile '")+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return write(t, "-f", "concat", "-safe", "0", "-i", script, "-map", "0", "-c", "copy", name)
}

var x264 = strings.Fields("-pix_fmt yuv420p -c:v libx264 -preset ultrafast -g 25")

// unusual returns clips with several tracks, and clips whose tracks change or need corrections.
func unusual() []clip {
	wide, half, silent := drawn(bars, "320x180", "1"), drawn(bars, "320x180", "0.5"), []float64(nil)
	changing := func(t *testing.T, name, codec string, args []string, sizes ...string) string {
		var parts []string
		for i, size := range sizes {
			source := []string{bars, others}[i%2]
			parts = append(parts, write(t, slices.Concat(drawn(source, size, "1"), []string{"-c:v", codec}, args,
				[]string{"part" + filepath.Ext(name)})...))
		}
		return join(t, name, parts...)
	}
	vpx := strings.Fields("-pix_fmt yuv420p -deadline realtime -cpu-used 8 -b:v 1M -g 25")
	cover := func(t *testing.T) string {
		return write(t, slices.Concat(drawn("testsrc", "64x64", "1"), strings.Fields("-frames:v 1 a.jpg"))...)
	}
	return []clip{
		{"VP8 that changes its size twice", func(t *testing.T) string {
			return changing(t, "a.webm", "libvpx", vpx, "320x180", "160x90", "320x180", "160x90")
		}, wide, slices.Concat(drawn(others, "160x90", "1"), []string{"-vf", "scale=320:180"}), silent},
		{"H.264 in a transport stream that becomes square and larger", func(t *testing.T) string {
			return changing(t, "a.ts", "libx264", x264, "320x180", "400x400")
		}, wide, slices.Concat(drawn(others, "400x400", "1"), []string{"-vf", "scale=180:180,pad=320:180:-1:-1"}), silent},
		{"pictures of another size and pixels of another shape", func(t *testing.T) string {
			return join(t, "a.ts", write(t, slices.Concat(wide, x264, []string{"a.ts"})...),
				write(t, slices.Concat(drawn(others, "180x180", "1"), []string{"-vf", "setsar=16/9"}, x264, []string{"b.ts"})...))
		}, wide, slices.Concat(drawn(others, "180x180", "1"), []string{"-vf", "scale=320:180"}), silent},
		{"wide pixels", func(t *testing.T) string {
			return write(t, slices.Concat(drawn(bars+",setsar=16/9", "180x180", "1"), x264, []string{"a.mkv"})...)
		}, wide, wide, silent},
		{"an Ogg whose sound comes first", func(t *testing.T) string {
			return write(t, slices.Concat(tone("300", "1"), wide, strings.Fields("-map 0 -map 1 -b:v 4M a.ogv"))...)
		}, wide, wide, []float64{300}},
		{"a cover before the tracks", func(t *testing.T) string {
			clip := write(t, slices.Concat(wide, tone("300", "1"), x264, []string{"-shortest", "a.mp4"})...)
			return write(t, "-i", cover(t), "-i", clip, "-map", "0", "-map", "1", "-c", "copy",
				"-disposition:v:0", "attached_pic", "a.mp4")
		}, wide, wide, []float64{300}},
		{"a second sound that is the default", func(t *testing.T) string {
			return write(t, slices.Concat(wide, tone("300", "1"), tone("900", "1"), x264,
				strings.Fields("-map 0 -map 1 -map 2 -disposition:a:0 0 -disposition:a:1 default a.mkv"))...)
		}, wide, wide, []float64{900}},
		{"a first sound that no decoder knows", func(t *testing.T) string {
			return unknownSound(t, write(t, slices.Concat(wide, tone("300", "1"), tone("900", "1"), x264,
				strings.Fields("-map 0 -map 1 -map 2 -c:a:0 pcm_s16be -c:a:1 aac a.mov"))...))
		}, wide, wide, []float64{900}},
		{"a sound that no decoder knows", func(t *testing.T) string {
			return unknownSound(t,
				write(t, slices.Concat(wide, tone("300", "1"), x264, strings.Fields("-c:a pcm_s16be a.mov"))...))
		}, wide, wide, silent},
		{"sound that changes its channels", func(t *testing.T) string {
			return sounds(t, "ac3", "2", "6", "1")
		}, wide, wide, []float64{300, 600, 900}},
		{"MPEG-2 with two fields", func(t *testing.T) string {
			return fields(t, "mpeg2video", "a.ts")
		}, at(1), at(23), silent},
		{"H.264 with two fields", func(t *testing.T) string {
			return fields(t, "libx264", "a.mp4")
		}, at(1), at(23), silent},
		late("libx264", ".ts"), late("libx264", ".mp4"), late("mpeg2video", ".mkv"),
		{"VP9 with alpha", func(t *testing.T) string { return holed(t, "libvpx-vp9") }, white, white, silent},
		{"turned, and later of another shape", func(t *testing.T) string {
			return matrix(t, write(t, "-i", changing(t, "a.ts", "libx264", x264, "320x180", "90x160"), "-c", "copy",
				"-tag:v", "avc3", "-bsf:v", "dump_extra", "a.mov"), 0, 1, -1, 0)
		}, slices.Concat(wide, []string{"-vf", "transpose=clock"}), slices.Concat(drawn(others, "90x160", "1"),
			[]string{"-vf", "scale=102:180,pad=320:180:-1:-1,transpose=clock"}), silent},
		{"AAC that changes its channels in MP4", func(t *testing.T) string {
			return write(t, "-i", sounds(t, "aac", "1", "2"), "-c", "copy", "a.mp4")
		}, wide, wide, []float64{300, 600}},
		made("sound that ends early", "a.mp4", wide, []float64{300, 0}, wide, tone("300", "0.5"), x264),
		made("a picture that ends early", "a.mp4", wide, []float64{300}, half, tone("300", "1"), x264),
		made("a picture that begins late", "a.mp4", wide, []float64{300}, []string{"-itsoffset", "0.5"}, half, tone("300", "1"), x264),
		made("60 pictures a second", "a.mp4", wide, silent, wide, x264, []string{"-r", "60"}),
		made("sound that begins late", "a.mov", wide, []float64{0, 600}, drawn(bars, "320x180", "2"),
			[]string{"-itsoffset", "1"}, tone("600", "1"), x264),
		made("times that begin late", "a.mkv", wide, []float64{600}, []string{"-itsoffset", "10"}, wide,
			[]string{"-itsoffset", "10"}, tone("600", "1"), x264, []string{"-copyts"}),
		{"a cut without a new key frame", func(t *testing.T) string {
			long := write(t, slices.Concat(wide, drawn(others, "320x180", "1"),
				strings.Fields("-filter_complex concat -pix_fmt yuv420p -c:v libx264 -g 99 a.mp4"))...)
			return write(t, "-ss", "1.2", "-i", long, "-c", "copy", "a.mov")
		}, drawn(others, "320x180", "1"), drawn(others, "320x180", "1"), silent},
		{"joined broadcasts", func(t *testing.T) string {
			var all []byte
			for i, source := range []string{bars, others} {
				content, _ := sniffed(t, write(t, slices.Concat(drawn(source, "320x180", "1"), tone(itoa(300*(i+1)), "1"), x264,
					[]string{"-output_ts_offset", itoa(5000 * i), "a.ts"})...))
				all = append(all, content...)
			}
			return mediatest.Noise(t, all, 0)
		}, wide, drawn(others, "320x180", "1"), []float64{300, 600}},
		made("a gap", "a.mkv", wide, silent, wide, strings.Fields("-vf setpts='if(lt(N,12),N,N+375)/25/TB' -vsync vfr"), x264),
		made("full range", "a.mp4", wide, silent, wide,
			strings.Fields("-vf scale=out_range=pc -c:v libx264 -pix_fmt yuvj420p -color_range pc")),
		{"an animated WebP", func(t *testing.T) string {
			return mediatest.AnimatedWebP(t, 96, 64, 32, 16, mediatest.Image{Name: "a.webp", Width: 32, Height: 32}.Make(t),
				mediatest.Image{Name: "a.webp", Width: 32, Height: 32, Source: "color=c=red"}.Make(t))
		}, placed("testsrc2"), placed("color=c=red"), silent},
	}
}

// placed is a small picture on white.
func placed(source string) []string {
	return slices.Concat(drawn(source, "32x32", "1"), []string{"-vf", "pad=96:64:32:16:white"})
}

// made is a clip that one run of ffmpeg makes.
func made(name, file string, picture []string, tones []float64, args ...[]string) clip {
	return clip{name, func(t *testing.T) string {
		return write(t, append(slices.Concat(args...), file)...)
	}, picture, picture, tones}
}

// late is a clip with progressive frames, then interlaced ones.
func late(codec, extension string) clip {
	wide := drawn(bars, "320x180", "1")
	return clip{"two fields after progressive pictures " + codec + extension, func(t *testing.T) string {
		return join(t, "a"+extension, write(t, slices.Concat(wide, x264, []string{"-c:v", codec, "a" + extension})...),
			fields(t, codec, "b"+extension))
	}, wide, at(23), nil}
}

// sounds makes a transport stream whose number of audio channels changes every second.
func sounds(t *testing.T, codec string, channels ...string) string {
	var parts []string
	for i, count := range channels {
		parts = append(parts, write(t, slices.Concat(drawn(bars, "320x180", "1"), tone(itoa(300*(i+1)), "1"), x264,
			[]string{"-c:a", codec, "-ac", count, "a.ts"})...))
	}
	return join(t, "a.ts", parts...)
}

func TestLooksSurviveSizeChange(t *testing.T) {
	part := func(size string) string {
		return write(t, slices.Concat(drawn(bars, size, "0.2"), x264, []string{"a.ts"})...)
	}
	data := input(t, join(t, "a.ts", part("320x180"), part("160x90"), part("90x160")), false)
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
	path := write(t, slices.Concat(drawn(bars, "320x180", "1"), strings.Fields("-pix_fmt yuv420p -c:v libx265 -preset ultrafast a.mp4"))...)
	spec := small(t, "rain")
	spec.Data = input(t, path, false)
	changed(t, path, func(movie []byte) bool {
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

// moving is a source of bars that move by 8 pixels every fiftieth of a second.
const moving = "nullsrc=s=320x180:r=50:d=1,geq=lum='255*lt(mod(X+8*N,64),32)':cb=128:cr=128"

func at(number int) []string {
	return []string{"-f", "lavfi", "-i", moving, "-vf", "select=eq(n\\," + itoa(2*number) + ")"}
}

// fields encodes the moving bars as interlaced frames whose two fields are from different times.
func fields(t *testing.T, codec, name string) string {
	t.Helper()
	return write(t, "-f", "lavfi", "-i", moving, "-vf", "tinterlace=interleave_top,setfield=tff",
		"-flags", "+ildct+ilme", "-pix_fmt", "yuv420p", "-c:v", codec, "-b:v", "8M", name)
}

var white = slices.Concat(drawn("color=c=white", "320x180", "1"),
	[]string{"-vf", "drawbox=c=red:t=fill:x=iw/2:w=iw/2:h=ih"})

// holed encodes a picture that is half red. The other half is transparent and hides green.
func holed(t *testing.T, codec string) string {
	t.Helper()
	return write(t, slices.Concat(drawn("color=c=red", "320x180", "0.4"), []string{
		"-vf", "format=yuva420p,geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)':a='255*gte(X,W/2)'",
		"-c:v", codec, "-pix_fmt", "yuva420p", "-auto-alt-ref", "0", "-deadline", "realtime", "-cpu-used", "8", "a.webm",
	})...)
}

// unknownSound changes the codec of a movie's uncompressed audio to one without a decoder.
func unknownSound(t *testing.T, path string) string {
	t.Helper()
	return changed(t, path, func(movie []byte) bool {
		at := strings.Index(string(movie), "twos")
		return at > 0 && copy(movie[at:], "apac") > 0
	})
}

func matrix(t *testing.T, path string, a, b, c, d int32) string {
	t.Helper()
	return changed(t, path, func(movie []byte) bool {
		at := strings.Index(string(movie), "tkhd")
		for i, value := range []int32{a, b, 0, c, d} {
			binary.BigEndian.PutUint32(movie[at+4+40+4*i:], uint32(value<<16))
		}
		return at > 0
	})
}

func changed(t *testing.T, path string, change func(content []byte) bool) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil || !change(content) {
		t.Fatalf("%s cannot be changed: %v", path, err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tones returns the frequency in each of several equal parts of a file's sound, measured by zero crossings.
func tones(t *testing.T, path string, parts int) []float64 {
	t.Helper()
	if parts == 0 {
		return nil
	}
	out, err := exec.CommandContext(
		t.Context(), "ffmpeg", "-v", "error", "-i", path, "-map", "0:a", "-ac", "1", "-ar", itoa(rate), "-f", "s16le", "-",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	return tonesIn(out, parts)
}

const rate = 8000 // of the examined sound, in samples per second

func tonesIn(out []byte, parts int) []float64 {
	sample := func(i int) int16 { return int16(binary.LittleEndian.Uint16(out[2*i:])) }
	var heard []float64
	part := len(out) / 2 / parts
	for i := range parts {
		from, to, crossed := i*part+part/4, i*part+3*part/4, 0
		for at := from; at < to; at++ {
			if sample(at) < 0 && sample(at+1) >= 0 {
				crossed++
			}
		}
		heard = append(heard, float64(crossed)*rate/float64(to-from))
	}
	return heard
}

func near(a, b []float64, most float64) bool {
	for i := range b {
		if math.Abs(a[i]-b[i]) > most {
			return false
		}
	}
	return len(a) == len(b)
}
