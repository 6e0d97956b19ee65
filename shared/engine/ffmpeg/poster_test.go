package ffmpeg_test

import (
	"bytes"
	"context"
	"errors"
	"image/color"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/engine"
	"cutroom/shared/engine/ffmpeg"
)

func TestPostersShowFirstPictures(t *testing.T) {
	tools := find(t)
	noise := "geq=random(1)*255:128+random(2)*127:128+random(3)*127"
	noisy := engine.Input{
		Path: mediatest.Image{Width: 1280, Height: 1280, Source: "nullsrc", Filter: noise}.Make(t), MIME: "image/png",
	}
	large := engine.Input{Path: mediatest.Video{Width: 1920, Height: 1080}.Make(t), MIME: "video/mp4"}
	for _, c := range []struct {
		name string
		of   []engine.Depicted
		want []catalog.Size
	}{
		{
			"of a video and a picture",
			pictures(
				engine.Input{Path: mediatest.Video{Width: 640, Height: 360}.Make(t), MIME: "video/mp4"},
				engine.Input{Path: mediatest.Image{Width: 300, Height: 600}.Make(t), MIME: "image/png"},
			),
			[]catalog.Size{{Width: 320, Height: 180}, {Width: 160, Height: 320}},
		},
		{
			"of a result and its input, with a poster", []engine.Depicted{
				{Input: large}, {Input: large, Poster: true},
				{Input: engine.Input{Path: mediatest.Video{Width: 640, Height: 360}.Make(t), MIME: "video/mp4"}},
			},
			[]catalog.Size{{Width: 320, Height: 180}, {Width: 1280, Height: 720}, {Width: 320, Height: 180}},
		},
		{
			"of noise", []engine.Depicted{{Input: noisy}, {Input: noisy, Poster: true}},
			[]catalog.Size{{Width: 320, Height: 320}, {Width: 1280, Height: 1280}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			posters, err := tools.Posters(t.Context(), t.TempDir(), c.of)
			if err != nil || len(posters) != len(c.of) {
				t.Fatalf("%d posters, %v", len(posters), err)
			}
			for i, poster := range posters {
				picture, err := jpeg.DecodeConfig(bytes.NewReader(poster))
				most, side := 20_000, 320
				if c.of[i].Poster {
					most, side = engine.MaxPoster, engine.PosterSide
				}
				if err != nil || len(poster) > most || picture.Width > side || picture.Height > side {
					t.Fatalf("%d: %d bytes of %dx%d, %v", i, len(poster), picture.Width, picture.Height, err)
				}
				if size := (catalog.Size{Width: picture.Width, Height: picture.Height}); size != c.want[i] {
					t.Errorf("%d: the picture shows %v, want %v", i, size, c.want[i])
				}
			}
		})
	}
}

func pictures(of ...engine.Input) (all []engine.Depicted) {
	for _, input := range of {
		all = append(all, engine.Depicted{Input: input})
	}
	return all
}

// The poster is a later frame if the first frames are blank. If all frames are blank, it is the first.
func TestPostersSkipBlankStart(t *testing.T) {
	tools := find(t)
	clip := func(source, filter string) engine.Input {
		return engine.Input{
			Path: mediatest.Video{Seconds: 3, Source: source, Filter: filter, Silent: true}.Make(t), MIME: "video/mp4",
		}
	}
	plain := posterSpread(t, tools, clip("testsrc2", ""))
	for _, c := range []struct {
		name        string
		of          engine.Input
		least, most float64
	}{
		{"a fade from black", clip("testsrc2", "fade=d=1"), 0.75 * plain, 1.25 * plain},
		{"a fade from white", clip("testsrc2", "fade=d=1:c=white"), 0.75 * plain, 1.25 * plain},
		{"white for half a second", clip("testsrc2", "drawbox=c=white:t=fill:enable='lt(t,0.5)'"), 0.75 * plain, 1.25 * plain},
		{"only black", clip("color=c=black", ""), 0, 3},
		{"content after the first two seconds", clip("testsrc2", "fade=st=2.5:d=0.3"), 0, 3},
		{"a black picture", engine.Input{Path: mediatest.Image{Source: "color=c=black"}.Make(t), MIME: "image/png"}, 0, 3},
	} {
		if spread := posterSpread(t, tools, c.of); spread < c.least || spread > c.most {
			t.Errorf("%s: the brightness deviates by %.1f, want %.1f to %.1f", c.name, spread, c.least, c.most)
		}
	}
}

// The search stops early, however many frames the first two seconds have, and the first frame
// becomes the poster. The test measures CPU time, which does not depend on other load.
func TestPosterSearchIsLimited(t *testing.T) {
	tools := find(t)
	folder := t.TempDir()
	frame, path := filepath.Join(folder, "frame.h264"), filepath.Join(folder, "blank.mp4")
	mediatest.Run(t, "-f", "lavfi", "-i", "color=black:s=4096x4096", "-frames:v", "1", "-c:v", "libx264",
		"-f", "h264", frame)
	one, err := os.ReadFile(frame) // 4 KB that take 13 ms to decode
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(frame, bytes.Repeat(one, 1600), 0o600); err != nil {
		t.Fatal(err)
	}
	mediatest.Run(t, "-r", "700", "-f", "h264", "-i", frame, "-c", "copy", path)
	before := childrenTime(t)
	posters, err := tools.Posters(t.Context(), t.TempDir(), pictures(engine.Input{Path: path, MIME: "video/mp4"}))
	if err != nil || len(posters) != 1 {
		t.Fatalf("%d posters, %v", len(posters), err)
	}
	if took := childrenTime(t) - before; took > 7*time.Second {
		t.Errorf("the programs used %v of CPU time", took)
	}
}

func childrenTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// An edit may draw on black frames of its input. The posters of input and result still show the same moment.
func TestPostersOfEditMatchInputTime(t *testing.T) {
	fading := mediatest.Video{Seconds: 3, Filter: "fade=d=1", Silent: true}
	framed := fading
	framed.Filter += ",drawbox=c=white:t=4"
	result := engine.Input{Path: framed.Make(t), MIME: "video/mp4"}
	of := []engine.Depicted{
		{Input: result}, {Input: result, Poster: true}, {Input: engine.Input{Path: fading.Make(t), MIME: "video/mp4"}},
	}
	posters, err := find(t).Posters(t.Context(), t.TempDir(), of)
	if err != nil {
		t.Fatal(err)
	}
	for i, poster := range posters {
		picture, err := jpeg.Decode(bytes.NewReader(poster))
		if err != nil {
			t.Fatal(err)
		}
		bounds := picture.Bounds()
		brightest := 0
		for x := bounds.Dx() / 4; x < bounds.Dx()*3/4; x++ {
			gray := color.GrayModel.Convert(picture.At(x, bounds.Dy()/3)).(color.Gray)
			brightest = max(brightest, int(gray.Y))
		}
		if brightest < 100 {
			t.Errorf("%d: the brightest pixel within the frame is %d", i, brightest)
		}
	}
}

func posterSpread(t *testing.T, tools *ffmpeg.Tools, of engine.Input) float64 {
	t.Helper()
	posters, err := tools.Posters(t.Context(), t.TempDir(), pictures(of))
	if err != nil {
		t.Fatal(err)
	}
	picture, err := jpeg.Decode(bytes.NewReader(posters[0]))
	if err != nil {
		t.Fatal(err)
	}
	var sum, squares float64
	bounds := picture.Bounds()
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			bright := float64(color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y)
			sum, squares = sum+bright, squares+bright*bright
		}
	}
	n := float64(bounds.Dx() * bounds.Dy())
	return math.Sqrt(squares/n - sum/n*sum/n)
}

func TestPosterShowsTransparencyAsWhite(t *testing.T) {
	clear := mediatest.Image{Source: "color=c=red", Filter: "format=rgba,geq=r=255:g=0:b=0:a=0", PixelFormat: "rgba"}
	of := pictures(engine.Input{Path: clear.Make(t), MIME: "image/png"})
	posters, err := find(t).Posters(t.Context(), t.TempDir(), of)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := jpeg.Decode(bytes.NewReader(posters[0]))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, _ := picture.At(10, 10).RGBA(); min(r, g, b) < 0xf000 {
		t.Errorf("the picture is %x %x %x", r, g, b)
	}
}

func TestPostersFailForBrokenFiles(t *testing.T) {
	tools := find(t)
	broken := filepath.Join(t.TempDir(), "broken.mp4")
	if err := os.WriteFile(broken, []byte("this is not a video"), 0o600); err != nil {
		t.Fatal(err)
	}
	of := pictures(engine.Input{Path: broken, MIME: "video/mp4"})
	_, err := tools.Posters(t.Context(), t.TempDir(), of)
	checkCode(t, err, job.InvalidInput)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := tools.Posters(ended, t.TempDir(), of); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context's end: %v", err)
	}
}
