package preview_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
	"cutroom/shared/testkit/pixeltest"
)

// sample is the bundled clip. Most tests check short, small edits of it.
var sample = filepath.Join("..", "..", "..", "testdata", "clip.mp4")

var tools = sync.OnceValues(func() (*ffmpeg.Tools, error) {
	known, err := catalog.Default("gen")
	if err != nil {
		return nil, err
	}
	return ffmpeg.Find(context.Background(), known.Limits)
})

// picture and traits are short for types that all tests use.
type (
	picture = pixeltest.Picture
	traits  = pixeltest.Traits
)

// Most tests edit the sample, so its properties and decoded pictures are cached.
var (
	inputs    sync.Map // path to *engine.Input
	originals sync.Map // ffmpeg arguments to func() []picture
)

func input(t testing.TB, path string, image bool) *engine.Input {
	t.Helper()
	if kept, ok := inputs.Load(path); ok {
		return kept.(*engine.Input)
	}
	found, err := tools()
	pixeltest.Require(t, err)
	absolute, err := filepath.Abs(path)
	pixeltest.Require(t, err)
	_, kind := sniffed(t, absolute)
	probe := found.ProbeVideo
	if image {
		probe = found.ProbeImage
	}
	info, err := probe(t.Context(), absolute, kind.MIME)
	pixeltest.Require(t, err)
	made := &engine.Input{Path: absolute, MIME: kind.MIME, Info: info}
	inputs.Store(path, made)
	return made
}

func small(t testing.TB, prompt string) engine.Spec {
	return engine.Spec{
		Kind: catalog.Edit, Prompt: prompt, Seed: 7, Data: input(t, sample, false),
		Size: catalog.Size{Width: 320, Height: 180}, FPS: 10, Duration: 200 * time.Millisecond,
	}
}

func run(t testing.TB, spec engine.Spec) string {
	t.Helper()
	path, _, err := attempt(t, t.Context(), spec)
	if err != nil {
		t.Fatalf("%s %q: %v", spec.Kind, spec.Prompt, err)
	}
	return path
}

func attempt(t testing.TB, ctx context.Context, spec engine.Spec) (path string, outcome engine.Outcome, err error) {
	t.Helper()
	found, err := tools()
	pixeltest.Require(t, err)
	spec.Folder = t.TempDir()
	name := "output.mp4"
	if spec.Kind == catalog.Image {
		name, spec.FPS, spec.Duration = "output.png", 0, 0
	}
	spec.Output = filepath.Join(spec.Folder, name)
	outcome, err = preview.New(found).Run(ctx, spec, func(engine.Progress) {})
	return spec.Output, outcome, err
}

func frames(t testing.TB, path string, size catalog.Size) []picture {
	t.Helper()
	return decode(t, size, "-i", path, "-vf", "scale="+strings.Replace(size.String(), "x", ":", 1)+":flags=bicubic")
}

// edits runs the edits, which all have the same size, and returns their frames. One ffmpeg process
// decodes them all, because starting ffmpeg takes longer than decoding the frames.
func edits(t testing.TB, specs ...engine.Spec) [][]picture {
	t.Helper()
	var paths []string
	for _, spec := range specs {
		paths = append(paths, run(t, spec))
	}
	decoded, _ := playedOf(t, specs[0].Size, false, paths...)
	return decoded
}

// playedOf returns the frames of files, and the last file's sound if sound is set.
func playedOf(t testing.TB, size catalog.Size, sound bool, paths ...string) (decoded [][]picture, samples []byte) {
	t.Helper()
	folder := t.TempDir()
	args := []string{"-v", "error"}
	for _, path := range paths {
		args = append(args, "-i", path)
	}
	for i := range paths {
		args = append(args, "-map", strconv.Itoa(i)+":v",
			"-vf", "scale="+strings.Replace(size.String(), "x", ":", 1)+":flags=bicubic",
			"-f", "rawvideo", "-pix_fmt", "rgb24", filepath.Join(folder, strconv.Itoa(i)))
	}
	heard := filepath.Join(folder, "sound")
	if sound {
		args = append(args, "-map", strconv.Itoa(len(paths)-1)+":a", "-ac", "1", "-ar", strconv.Itoa(mediatest.SoundRate), "-f", "s16le", heard)
	}
	if out, err := exec.CommandContext(t.Context(), "ffmpeg", args...).CombinedOutput(); err != nil {
		t.Fatalf("decode: %v\n%s", err, out)
	}
	if sound {
		var err error
		samples, err = os.ReadFile(heard)
		pixeltest.Require(t, err)
	}
	decoded = make([][]picture, len(paths))
	for i := range paths {
		content, err := os.ReadFile(filepath.Join(folder, strconv.Itoa(i)))
		pixeltest.Require(t, err)
		decoded[i] = pictures(t, size, content)
	}
	return decoded, samples
}

// untouched decodes the input at the result's size and frame rate, and returns as many frames as the result has.
func untouched(t testing.TB, spec engine.Spec) []picture {
	t.Helper()
	filters := "scale=" + strings.Replace(spec.Size.String(), "x", ":", 1) + ":flags=bicubic"
	if spec.FPS > 0 {
		filters = "fps=" + strconv.Itoa(spec.FPS) + "," + filters
	}
	count := max(1, int(spec.Duration.Seconds()*float64(spec.FPS)+0.5))
	return decodeOnce(t, spec.Size, "-i", spec.Data.Path, "-vf", filters, "-frames:v", strconv.Itoa(count))
}

func decodeOnce(t testing.TB, size catalog.Size, args ...string) []picture {
	decoded := sync.OnceValue(func() []picture { return decode(t, size, args...) })
	made, _ := originals.LoadOrStore(strings.Join(args, " "), decoded)
	return made.(func() []picture)()
}

func decode(t testing.TB, size catalog.Size, args ...string) []picture {
	t.Helper()
	args = append([]string{"-v", "error"}, args...)
	cmd := exec.CommandContext(t.Context(), "ffmpeg", append(args, "-f", "rawvideo", "-pix_fmt", "rgb24", "-")...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("decode: %v\n%s", err, log.Bytes())
	}
	return pictures(t, size, out.Bytes())
}

func pictures(t testing.TB, size catalog.Size, raw []byte) []picture {
	t.Helper()
	var pictures []picture
	length := 3 * size.Width * size.Height
	for rest := raw; len(rest) >= length; rest = rest[length:] {
		pictures = append(pictures, picture{Width: size.Width, Height: size.Height, Pixels: rest[:length]})
	}
	if len(pictures) == 0 {
		t.Fatal("decode: no pictures")
	}
	return pictures
}
