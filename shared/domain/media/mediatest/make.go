package mediatest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Drawn returns ffmpeg arguments for a source filter with a size, such as "320x180", and a length
// in seconds, at 25 frames per second.
func Drawn(source, size, seconds string) []string {
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

// Tone returns ffmpeg arguments for a sine tone with a frequency and a length in seconds.
func Tone(hertz, seconds string) []string {
	return []string{"-f", "lavfi", "-i", "sine=f=" + hertz + ":r=48000:d=" + seconds}
}

// Write runs ffmpeg and returns the path of its output, whose name is the last argument.
func Write(t testing.TB, args ...string) string {
	t.Helper()
	last := len(args) - 1
	path := filepath.Join(t.TempDir(), args[last])
	Run(t, append(args[:last:last], path)...)
	return path
}

// Join concatenates files into one file without re-encoding.
func Join(t testing.TB, name string, paths ...string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(script, []byte("file '"+strings.Join(paths, "'\nfile '")+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Write(t, "-f", "concat", "-safe", "0", "-i", script, "-map", "0", "-c", "copy", name)
}

// UnknownSound changes the codec of a movie's uncompressed audio to one without a decoder.
func UnknownSound(t testing.TB, path string) string {
	t.Helper()
	return Change(t, path, func(movie []byte) bool {
		at := strings.Index(string(movie), "twos")
		return at > 0 && copy(movie[at:], "apac") > 0
	})
}

// Matrix sets the transformation matrix of the first track of a movie.
func Matrix(t testing.TB, path string, a, b, c, d int32) string {
	t.Helper()
	return Change(t, path, func(movie []byte) bool {
		at := strings.Index(string(movie), "tkhd")
		for i, value := range []int32{a, b, 0, c, d} {
			binary.BigEndian.PutUint32(movie[at+4+40+4*i:], uint32(value<<16))
		}
		return at > 0
	})
}

// Change changes a file in place. The function returns false if it cannot.
func Change(t testing.TB, path string, change func(content []byte) bool) string {
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

// Bars is a source filter of color bars.
const Bars = "smptebars"

// H264 has ffmpeg's arguments for a common video.
var H264 = strings.Fields("-pix_fmt yuv420p -c:v libx264 -preset ultrafast -g 25")

// moving is a source of bars that move by 8 pixels every fiftieth of a second.
const moving = "nullsrc=s=320x180:r=50:d=1,geq=lum='255*lt(mod(X+8*N,64),32)':cb=128:cr=128"

// Moved returns ffmpeg arguments for the bars at the given twenty-fifth of a second.
func Moved(number int) []string {
	return []string{"-f", "lavfi", "-i", moving, "-vf", "select=eq(n\\," + strconv.Itoa(2*number) + ")"}
}

// Interlaced encodes the moving bars as interlaced frames whose two fields are from different times.
func Interlaced(t testing.TB, codec, name string) string {
	t.Helper()
	return Write(t, "-f", "lavfi", "-i", moving, "-vf", "tinterlace=interleave_top,setfield=tff",
		"-flags", "+ildct+ilme", "-pix_fmt", "yuv420p", "-c:v", codec, "-b:v", "8M", name)
}

// Filled returns ffmpeg arguments for the picture that [Holed] shows on white.
var Filled = slices.Concat(Drawn("color=c=white", "320x180", "1"),
	[]string{"-vf", "drawbox=c=red:t=fill:x=iw/2:w=iw/2:h=ih"})

// Holed encodes a picture that is half red. The other half is transparent and hides green.
func Holed(t testing.TB, codec string) string {
	t.Helper()
	return Write(t, slices.Concat(Drawn("color=c=red", "320x180", "0.4"), []string{
		"-vf", "format=yuva420p,geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)':a='255*gte(X,W/2)'",
		"-c:v", codec, "-pix_fmt", "yuva420p", "-auto-alt-ref", "0", "-deadline", "realtime", "-cpu-used", "8", "a.webm",
	})...)
}

// ChangingSound makes a transport stream whose number of audio channels changes every second.
func ChangingSound(t testing.TB, codec string, channels ...string) string {
	var parts []string
	for i, count := range channels {
		parts = append(parts, Write(t, slices.Concat(Drawn(Bars, "320x180", "1"), Tone(strconv.Itoa(300*(i+1)), "1"), H264,
			[]string{"-c:a", codec, "-ac", count, "a.ts"})...))
	}
	return Join(t, "a.ts", parts...)
}
