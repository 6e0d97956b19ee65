// Package mediatest creates small media files for tests: real ones with ffmpeg,
// of every kind that people send, and hostile ones. Each call creates a file in
// a folder that is removed with the test. Under make test ffmpeg draws a file
// once, and who describes the same one again gets a copy: see draw.
package mediatest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Video describes a clip. The zero value is an MP4 of one second: 160x90
// pixels, 10 frames per second, H.264, a tone with a click each half second.
type Video struct {
	// Name of the file. Its extension chooses the container: .mp4, .mov, .mkv,
	// .webm, .avi, .gif, .ts, .ogv, .flv or .3gp. Default "clip.mp4".
	Name string
	// Width and Height are of the stored pictures, in pixels.
	Width, Height int
	// FPS is in frames per second, Seconds the length.
	FPS, Seconds float64
	// Source is an FFmpeg source filter that draws the pictures, such as
	// "color=c=red" or "testsrc2", which is the default. It must not set size
	// or rate.
	Source string
	// Filter is applied to the pictures, such as "fade".
	Filter string
	// Flash makes the frame white where the sound clicks, to check that they
	// stay together.
	Flash bool
	// Silent clips have no audio track.
	Silent bool
	// Codec is FFmpeg's name of the video encoder, PixelFormat its pixel format. The defaults suit the
	// container.
	Codec, PixelFormat string
	// Rotation, in degrees clockwise, is how far a player must rotate the
	// pictures of an MP4 or MOV: 0, 90, 180 or 270.
	Rotation int
	// HDR marks the pictures as PQ in BT.2020.
	HDR bool
	// Variable makes the time between frames vary.
	Variable bool
	// FastStart puts the header of an MP4 or MOV at the front.
	FastStart bool
	// Args are more options of ffmpeg for the output.
	Args []string
}

// ClickEvery is the time from one click in a clip's sound to the next, in
// seconds. The first is at 0.
const ClickEvery = 0.5

// formats are encoder options by extension: video, then audio.
var formats = map[string]struct{ codec, pixelFormat, audio string }{
	".mp4":  {"libx264", "yuv420p", "aac"},
	".mov":  {"libx264", "yuv420p", "aac"},
	".3gp":  {"libx264", "yuv420p", "aac"},
	".mkv":  {"libx264", "yuv420p", "aac"},
	".flv":  {"libx264", "yuv420p", "aac"},
	".ts":   {"libx264", "yuv420p", "aac"},
	".avi":  {"mpeg4", "yuv420p", "libmp3lame"},
	".webm": {"libvpx-vp9", "yuv420p", "libopus"},
	".ogv":  {"libtheora", "yuv420p", "libvorbis"},
	".gif":  {"gif", "", ""},
}

// speed are options that make an encoder quick.
var speed = map[string][]string{
	"libx264":    {"-preset", "ultrafast"},
	"libx265":    {"-preset", "ultrafast"},
	"libvpx-vp9": {"-deadline", "realtime", "-cpu-used", "8"},
}

// Make creates the clip and returns its path.
func (v Video) Make(t testing.TB) string {
	t.Helper()
	v.setDefaults()
	path := filepath.Join(t.TempDir(), v.Name)
	audio := formats[filepath.Ext(v.Name)].audio
	args := []string{"-f", "lavfi", "-i", source(v.Source, v.Width, v.Height, v.FPS)}
	if v.Silent || audio == "" {
		args = append(args, "-map", "0:v")
	} else {
		const sound = "aevalsrc='0.1*sin(2*PI*440*t)+0.8*lt(mod(t,0.5),0.01)*sin(2*PI*2000*t)':s=48000"
		args = append(args, "-f", "lavfi", "-i", sound, "-map", "0:v", "-map", "1:a", "-c:a", audio)
	}
	args = append(args, "-c:v", v.Codec)
	args = append(args, speed[v.Codec]...)
	if v.PixelFormat != "" {
		args = append(args, "-pix_fmt", v.PixelFormat)
	}
	if filters := v.filters(); len(filters) > 0 {
		args = append(args, "-vf", strings.Join(filters, ","))
	}
	if v.Codec == "libx265" {
		args = append(args, "-tag:v", "hvc1", "-x265-params", v.x265())
	}
	if v.HDR {
		args = append(args, "-color_primaries", "bt2020", "-color_trc", "smpte2084", "-colorspace", "bt2020nc")
	}
	if v.Variable {
		args = append(args, "-vsync", "vfr", "-enc_time_base", "1:1000")
	}
	if v.FastStart {
		args = append(args, "-movflags", "+faststart")
	}
	args = append(args, "-t", strconv.FormatFloat(v.Seconds, 'f', -1, 64))
	draw(t, path, append(args, v.Args...))
	if v.Rotation != 0 {
		rotate(t, path, v.Rotation)
	}
	return path
}

func (v *Video) setDefaults() {
	if v.Name == "" {
		v.Name = "clip.mp4"
	}
	format := formats[filepath.Ext(v.Name)]
	if v.Width == 0 {
		v.Width = 160
	}
	if v.Height == 0 {
		v.Height = 90
	}
	if v.FPS == 0 {
		v.FPS = 10
	}
	if v.Seconds == 0 {
		v.Seconds = 1
	}
	if v.Source == "" {
		v.Source = "testsrc2"
	}
	if v.Codec == "" {
		v.Codec = format.codec
	}
	if v.PixelFormat == "" {
		v.PixelFormat = format.pixelFormat
	}
}

func (v Video) filters() []string {
	var filters []string
	if v.Filter != "" {
		filters = append(filters, v.Filter)
	}
	if v.Flash {
		filters = append(
			filters, "drawbox=c=white:t=fill:enable='lt(mod(t,0.5),1/"+strconv.FormatFloat(v.FPS, 'f', -1, 64)+")'",
		)
	}
	if v.Variable {
		filters = append(filters, "setpts='(N+0.4*mod(N,3))/FR/TB'")
	}
	return filters
}

func (v Video) x265() string {
	params := "log-level=error:pools=1:frame-threads=1"
	if v.HDR {
		params += ":colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc"
	}
	return params
}

// source adds size and rate to a source filter. Without chroma subsampling it
// can draw odd sides too.
func source(filter string, width, height int, fps float64) string {
	separator := "="
	if strings.Contains(filter, "=") {
		separator = ":"
	}
	return filter + separator + "s=" + strconv.Itoa(width) + "x" + strconv.Itoa(height) +
		":r=" + strconv.FormatFloat(fps, 'f', -1, 64) + ",format=yuv444p"
}

// draw runs ffmpeg to create the file at path, whose name determines its container. If the variable
// TEST_MEDIA names a folder, ffmpeg draws each file once for all packages that share the folder:
// starting it takes longer than encoding a second of small pictures. Another ffmpeg needs another
// folder: see scripts/test.sh.
func draw(t testing.TB, path string, args []string) {
	t.Helper()
	folder := os.Getenv("TEST_MEDIA")
	if folder == "" {
		Run(t, append(args, path)...)
		return
	}
	sum := sha256.Sum256([]byte(strings.Join(append(args, filepath.Ext(path)), "\x00")))
	kept := filepath.Join(folder, hex.EncodeToString(sum[:])+filepath.Ext(path))
	content, err := os.ReadFile(kept)
	if errors.Is(err, fs.ErrNotExist) {
		Run(t, append(args, path)...)
		if content, err = os.ReadFile(path); err == nil {
			err = keep(kept, content)
		}
	} else if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// keep writes a file that others read, whole or not at all.
func keep(path string, content []byte) error {
	part, err := os.CreateTemp(filepath.Dir(path), "part-")
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	if err = cmp.Or(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	return err
}

// Run runs ffmpeg with the arguments, unsandboxed, and fails the test if it fails.
func Run(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "ffmpeg",
		append([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-y"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// write creates a file of the bytes in a folder of the test's own.
func write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read returns the bytes of a file.
func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
