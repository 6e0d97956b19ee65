package frame_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
	"cutroom/shared/engine/enginetest"
	"cutroom/shared/engine/ffmpeg"
	"cutroom/shared/engine/preview"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/testkit/pixeltest"
	"cutroom/shared/testkit/racetest"
)

const seed = 7

var tools = sync.OnceValues(func() (*ffmpeg.Tools, error) {
	known, err := catalog.Default("gen")
	if err != nil {
		return nil, err
	}
	return ffmpeg.Find(context.Background(), known.Limits)
})

// Most tests edit the same picture, so decoded frames are cached.
var probed sync.Map

func frameOf(t testing.TB, size catalog.Size, at float64) []byte {
	t.Helper()
	clip := filepath.Join("..", "..", "..", "..", "testdata", "clip.mp4")
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-ss", strconv.FormatFloat(at, 'f', 2, 64),
		"-i", clip,
		"-vf", fmt.Sprintf("scale=%d:%d:flags=bicubic:out_range=pc,format=yuvj420p", size.Width, size.Height),
		"-frames:v", "1", "-q:v", "1", "-f", "mjpeg", "-").Output()
	pixeltest.Require(t, err)
	return out
}

func editor(t testing.TB, prompt string) engine.LiveEditor {
	t.Helper()
	return editorAt(t, prompt, func() time.Time { return time.Unix(0, 0) })
}

func editorAt(t testing.TB, prompt string, clock func() time.Time) engine.LiveEditor {
	t.Helper()
	e, err := frame.New(clock, func() uint32 { return seed }).Open(t.Context(), &catalog.Model{Kind: catalog.Edit})
	pixeltest.Require(t, err)
	t.Cleanup(e.Close)
	e.SetPrompt(t.Context(), prompt)
	return e
}

func pictureOf(t testing.TB, jpeg []byte) *engine.Picture {
	t.Helper()
	picture, _, err := image.Decode(bytes.NewReader(jpeg))
	pixeltest.Require(t, err)
	return &engine.Picture{YCbCr: *picture.(*image.YCbCr)}
}

func edit(t testing.TB, e engine.LiveEditor, picture *engine.Picture) image.Image {
	t.Helper()
	out, err := e.Edit(t.Context(), picture)
	pixeltest.Require(t, err)
	kept := out.YCbCr
	kept.Y, kept.Cb, kept.Cr = slices.Clone(kept.Y), slices.Clone(kept.Cb), slices.Clone(kept.Cr)
	return &kept
}

func finished(t testing.TB, prompt string, jpeg, reference []byte) image.Image {
	t.Helper()
	found, err := tools()
	pixeltest.Require(t, err)
	folder := t.TempDir()
	input := func(name string, data []byte) *engine.Input {
		path := filepath.Join(folder, name)
		pixeltest.Require(t, os.WriteFile(path, data, 0o600))
		info, ok := probed.Load(string(data))
		if !ok {
			var err error
			info, err = found.ProbeImage(t.Context(), path, "image/jpeg")
			pixeltest.Require(t, err)
			probed.Store(string(data), info)
		}
		return &engine.Input{Path: path, MIME: "image/jpeg", Info: info.(media.Info)}
	}
	spec := engine.Spec{
		Kind: catalog.Image, Prompt: prompt, Seed: seed, Data: input("data", jpeg), Size: frame.Box,
		Folder: folder, Output: filepath.Join(folder, "output.png"),
	}
	if reference != nil {
		spec.Reference = input("reference", reference)
	}
	_, err = preview.New(found).Run(t.Context(), spec, func(engine.Progress) {})
	pixeltest.Require(t, err)
	out, err := os.ReadFile(spec.Output)
	pixeltest.Require(t, err)
	picture, err := png.Decode(bytes.NewReader(out))
	pixeltest.Require(t, err)
	return picture
}

// difference returns the mean difference of two pictures, which it averages over squares with the given side.
func difference(a, b image.Image, side int) float64 {
	return pixeltest.Of(a).Apart(pixeltest.Of(b), side)
}

// alike fails unless the live picture is close to the finished one. Single pixels may differ as much as JPEG
// requires. Averages over squares of eight pixels must be closer, because averaging evens out grain and compression.
func alike(t testing.TB, what string, live, done image.Image) {
	t.Helper()
	fine, coarse := difference(live, done, 1), difference(live, done, 8)
	t.Logf("%s: differs by %.2f of 255, in squares by %.2f", what, fine, coarse)
	if fine > 12 || coarse > 4 {
		t.Errorf("%s: differs by %.2f of 255 (12 are allowed), in squares by %.2f (4)", what, fine, coarse)
	}
}

func TestLiveLooksMatchFinishedLooks(t *testing.T) {
	in := frameOf(t, frame.Box, 1)
	for i, prompt := range append(look.Names(), "warmer, vivid anime at sunset") {
		if racetest.Enabled && i%6 != 0 {
			continue
		}
		e := editor(t, prompt)
		live := edit(t, e, pictureOf(t, in))
		alike(t, fmt.Sprintf("%q", prompt), live, finished(t, prompt, in, nil))
		if changed := difference(live, &pictureOf(t, in).YCbCr, 1); changed < 3 {
			t.Errorf("%q changes the picture by %.2f only", prompt, changed)
		}
	}
}

func TestReferenceColorsAreApplied(t *testing.T) {
	in := frameOf(t, frame.Box, 1)
	reference, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "testdata", "reference.jpg"))
	pixeltest.Require(t, err)
	found, err := tools()
	pixeltest.Require(t, err)
	pixels, size, err := found.Still(t.Context(), reference, "image/jpeg", 384)
	pixeltest.Require(t, err)
	for _, prompt := range []string{"", "watercolor"} {
		e := editor(t, prompt)
		before := edit(t, e, pictureOf(t, in))
		e.SetImage(t.Context(), &engine.ReferenceImage{Size: size, Pixels: pixels})
		live := edit(t, e, pictureOf(t, in))
		alike(t, fmt.Sprintf("a reference and %q", prompt), live, finished(t, prompt, in, reference))
		e.SetImage(t.Context(), nil)
		if d := difference(edit(t, e, pictureOf(t, in)), before, 1); d != 0 {
			t.Errorf("%q: without the reference the picture differs by %.2f from the one before it", prompt, d)
		}
	}
}

// The prompt arrives while the first frame is being edited.
func TestPromptDuringFirstFrameApplies(t *testing.T) {
	in := frameOf(t, frame.Box, 1)
	want := edit(t, editor(t, "film noir"), pictureOf(t, in))
	for range 4 {
		// The clock is read just before the first frame's look is prepared, which takes a while.
		making := make(chan struct{})
		begun := sync.OnceFunc(func() { close(making) })
		clock := func() time.Time {
			begun()
			return time.Unix(0, 0)
		}
		e := editorAt(t, "watercolor", clock)
		var setting sync.WaitGroup
		setting.Go(func() {
			<-making
			e.SetPrompt(t.Context(), "film noir")
		})
		edit(t, e, pictureOf(t, in))
		setting.Wait()
		if d := difference(want, edit(t, e, pictureOf(t, in)), 1); d != 0 {
			t.Fatalf("the prompt is lost: the second frame differs by %.2f", d)
		}
	}
}

func TestSnowMoves(t *testing.T) {
	now := time.Unix(0, 0)
	e := editorAt(t, "snow", func() time.Time { return now })
	in := frameOf(t, frame.Box, 1)
	first := edit(t, e, pictureOf(t, in))
	now = now.Add(time.Second / 2)
	if d := difference(first, edit(t, e, pictureOf(t, in)), 1); d < 0.5 {
		t.Errorf("half a second later the frame differs by %.2f only", d)
	}
	now = now.Add(1000 * time.Hour)
	edit(t, e, pictureOf(t, in))
}

// A limited-range picture is edited like the same picture in full range.
func TestPictureRangeIsKept(t *testing.T) {
	full := pictureOf(t, frameOf(t, frame.Box, 1))
	scale := func(levels int) func(uint8) uint8 {
		return func(v uint8) uint8 { return uint8((int(v)*levels+127)/255 + 16) }
	}
	narrow := &engine.Picture{Narrow: true, YCbCr: *copied(&full.YCbCr, scale(219), scale(224))}
	for _, prompt := range []string{"", "watercolor"} {
		e := editor(t, prompt)
		want := edit(t, e, full)
		out, err := e.Edit(t.Context(), narrow)
		pixeltest.Require(t, err)
		if !out.Narrow {
			t.Errorf("%q: the range has changed", prompt)
		}
		if (out == narrow) != (prompt == "") {
			t.Errorf("%q: the result is the input itself: %v", prompt, out == narrow)
		}
		widen := func(v uint8) uint8 { return uint8(min(255, max(0, ((int(v)-16)*255+109)/219))) }
		chroma := func(v uint8) uint8 { return uint8(min(255, max(0, ((int(v)-16)*255+112)/224))) }
		if d := difference(want, copied(&out.YCbCr, widen, chroma), 1); d > 1.5 {
			t.Errorf("%q: the picture differs by %.2f from the one with full range", prompt, d)
		}
	}
}

func copied(from *image.YCbCr, luma, chroma func(uint8) uint8) *image.YCbCr {
	to := *from
	each := func(plane []uint8, value func(uint8) uint8) []uint8 {
		plane = slices.Clone(plane)
		for i, v := range plane {
			plane[i] = value(v)
		}
		return plane
	}
	to.Y, to.Cb, to.Cr = each(from.Y, luma), each(from.Cb, chroma), each(from.Cr, chroma)
	return &to
}

func TestEngineConforms(t *testing.T) {
	enginetest.RunLive(t, enginetest.LiveHarness{
		Engine: frame.New(time.Now, func() uint32 { return seed }), Model: &catalog.Model{Kind: catalog.Edit},
		Prompt: "cyberpunk neon", Large: image.Pt(4000, 3000),
	})
}

// hostileSizes are odd sizes, the smallest sizes, and sizes that are extreme in one direction.
var hostileSizes = []image.Point{
	{1, 1}, {3, 3}, {1, 1920}, {1920, 1}, {2, 1081}, {1087, 3}, {16383, 127}, {127, 16383}, {65535, 31}, {31, 65535},
	{5, 640}, {641, 7}, {100, 33}, {37, 640}, {1919, 1087},
}

// JPEGs can have these subsamplings.
var subsamplings = []image.YCbCrSubsampleRatio{
	image.YCbCrSubsampleRatio420, image.YCbCrSubsampleRatio444, image.YCbCrSubsampleRatio422,
	image.YCbCrSubsampleRatio440, image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410,
}

// noisy returns a picture whose stride exceeds its width. Its planes end at the last pixel, so that
// an out-of-bounds read is caught.
func noisy(size image.Point, ratio image.YCbCrSubsampleRatio, random *rand.Rand) *image.YCbCr {
	picture := image.NewYCbCr(image.Rect(0, 0, size.X+16, size.Y), ratio)
	for _, plane := range [][]uint8{picture.Y, picture.Cb, picture.Cr} {
		for i := range plane {
			plane[i] = uint8(random.Uint32())
		}
	}
	picture.Rect = image.Rectangle{Max: size}
	luma := picture.YOffset(size.X-1, size.Y-1) + 1
	chroma := picture.COffset(size.X-1, size.Y-1) + 1
	picture.Y, picture.Cb, picture.Cr = picture.Y[:luma:luma], picture.Cb[:chroma:chroma], picture.Cr[:chroma:chroma]
	return picture
}

// A session must edit frames of ever-changing sizes as a new session would.
func TestHostileSizesAreEdited(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := look.Names()
	turn := 0
	for i := 0; i < len(names); i += 5 { // only every fifth look, to keep the test fast
		prompt := names[i]
		for n := range i / 5 % 3 { // combine some of the looks
			prompt += " " + names[(i+7+12*n)%len(names)]
		}
		session := editor(t, prompt)
		for range 2 {
			size, ratio := hostileSizes[turn%len(hostileSizes)], subsamplings[turn%len(subsamplings)]
			in := &engine.Picture{YCbCr: *noisy(size, ratio, random), Narrow: turn%4 < 2}
			turn++
			what := fmt.Sprintf("%q, %v, %v", prompt, size, in.SubsampleRatio)
			got, want := edit(t, session, in).(*image.YCbCr), edit(t, editor(t, prompt), in).(*image.YCbCr)
			fit := frame.Box.Fit(catalog.Size{Width: size.X, Height: size.Y})
			chroma := (fit.Width + 1) / 2 * ((fit.Height + 1) / 2)
			if got.Rect.Size() != image.Pt(fit.Width, fit.Height) || got.SubsampleRatio != image.YCbCrSubsampleRatio420 ||
				len(got.Y) != fit.Width*fit.Height || len(got.Cb) != chroma || len(got.Cr) != chroma {
				t.Errorf("%s: %v with planes of %d, %d and %d", what, got.Rect, len(got.Y), len(got.Cb), len(got.Cr))
			}
			if !bytes.Equal(got.Y, want.Y) || !bytes.Equal(got.Cb, want.Cb) || !bytes.Equal(got.Cr, want.Cr) {
				t.Errorf("%s: an earlier picture is visible in it", what)
			}
		}
	}
}
