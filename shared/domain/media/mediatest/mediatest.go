// Package mediatest creates small media files for tests. With ffmpeg, it makes ordinary files of every type that
// people send. It also makes hostile files. Each call creates a file in a temporary folder.
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

// Video describes a clip. The zero value is a one-second MP4 with 160x90 pixels, 10 frames per
// second, H.264, and a tone with a click every half second.
type Video struct {
	// The extension of Name selects the container: .mp4, .mov, .mkv, .webm, .avi, .gif, .ts, .ogv, .flv or .3gp.
	Name string
	// Width and Height are the size of the stored frames.
	Width, Height int
	FPS, Seconds  float64
	// Source is an FFmpeg source filter, such as "color=c=red". It must not set the size or frame rate.
	Source string
	Filter string // an FFmpeg filter, such as "fade"
	// Flash turns the frame white at each click of the sound.
	Flash  bool
	Silent bool
	// Codec and PixelFormat are FFmpeg's names. The defaults suit the container.
	Codec, PixelFormat string
	// Rotation is the clockwise rotation that a player must apply to an MP4 or MOV: 0, 90, 180 or 270.
	Rotation  int
	HDR       bool     // PQ in BT.2020
	Variable  bool     // varies the time between frames
	FastStart bool     // puts the header of an MP4 or MOV at the front
	Args      []string // more ffmpeg options for the output
}

// beeps is a source of a quiet tone with clicks.
const beeps = "aevalsrc='0.1*sin(2*PI*440*t)+0.8*lt(mod(t,0.5),0.01)*sin(2*PI*2000*t)':s=48000"

const ClickEvery = 0.5 // in seconds; the first click is at 0

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

var speed = map[string][]string{
	"libx264":    {"-preset", "ultrafast"},
	"libx265":    {"-preset", "ultrafast"},
	"libvpx-vp9": {"-deadline", "realtime", "-cpu-used", "8"},
}

func (v Video) Make(t testing.TB) string {
	t.Helper()
	v.setDefaults()
	path := filepath.Join(t.TempDir(), v.Name)
	audio := formats[filepath.Ext(v.Name)].audio
	args := []string{"-f", "lavfi", "-i", source(v.Source, v.Width, v.Height, v.FPS)}
	if v.Silent || audio == "" {
		args = append(args, "-map", "0:v")
	} else {
		args = append(args, "-f", "lavfi", "-i", beeps, "-map", "0:v", "-map", "1:a", "-c:a", audio)
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
		filters = append(filters,
			"drawbox=c=white:t=fill:enable='lt(mod(t,0.5),1/"+strconv.FormatFloat(v.FPS, 'f', -1, 64)+")'")
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

// source disables chroma subsampling, so that the filter can also draw odd sizes.
func source(filter string, width, height int, fps float64) string {
	separator := "="
	if strings.Contains(filter, "=") {
		separator = ":"
	}
	return filter + separator + "s=" + strconv.Itoa(width) + "x" + strconv.Itoa(height) +
		":r=" + strconv.FormatFloat(fps, 'f', -1, 64) + ",format=yuv444p"
}

// draw runs ffmpeg to create the file at path. If TEST_MEDIA names a folder, each file is made only
// once for all packages that share the folder, because starting ffmpeg is slow. Each version of
// ffmpeg needs its own folder (see scripts/test.sh).
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

// keep writes the file atomically, because other processes may be reading it.
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

// Run runs ffmpeg without a sandbox.
func Run(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "ffmpeg",
		append([]string{"-nostdin", "-hide_banner", "-loglevel", "error", "-y"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
