package frame_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
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

// require stops the test if there is an error.
func require(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Most tests edit the same picture, so decoded frames are cached.
var probed sync.Map

func frameOf(t testing.TB, size catalog.Size, at float64) []byte {
	t.Helper()
	clip := filepath.Join("..", "..", "..", "..", "testdata", "clip.mp4")
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-v", "error", "-ss", strconv.FormatFloat(at, 'f', 2, 64),
		"-i", clip,
		"-vf", fmt.Sprintf("scale=%d:%d:flags=bicubic:out_range=pc,format=yuvj420p", size.Width, size.Height),
		"-frames:v", "1", "-q:v", "1", "-f", "mjpeg", "-").Output()
	require(t, err)
	return out
}

func still(t testing.TB, data []byte, mime string) *engine.ReferenceImage {
	t.Helper()
	found, err := tools()
	require(t, err)
	pixels, size, err := found.Still(t.Context(), data, mime, 384)
	require(t, err)
	return &engine.ReferenceImage{Size: size, Pixels: pixels}
}

func decoded(t testing.TB, encoded []byte) image.Image {
	t.Helper()
	picture, _, err := image.Decode(bytes.NewReader(encoded))
	require(t, err)
	return picture
}

func editor(t testing.TB, kind catalog.Kind) engine.LiveEditor {
	t.Helper()
	e, err := frame.New(
		func() time.Time { return time.Unix(0, 0) }, func() uint32 { return seed },
	).Open(t.Context(), &catalog.Model{Kind: kind})
	require(t, err)
	t.Cleanup(e.Close)
	return e
}

func pictureOf(t testing.TB, encoded []byte) *engine.Picture {
	t.Helper()
	return &engine.Picture{YCbCr: *decoded(t, encoded).(*image.YCbCr)}
}

func edit(t testing.TB, e engine.LiveEditor, jpeg []byte) image.Image {
	t.Helper()
	return edited(t, e, pictureOf(t, jpeg))
}

func edited(t testing.TB, e engine.LiveEditor, picture *engine.Picture) image.Image {
	t.Helper()
	out, err := e.Edit(t.Context(), picture)
	require(t, err)
	kept := out.YCbCr
	kept.Y, kept.Cb, kept.Cr = slices.Clone(kept.Y), slices.Clone(kept.Cb), slices.Clone(kept.Cr)
	return &kept
}

func finished(t testing.TB, kind catalog.Kind, prompt string, jpeg, reference []byte) image.Image {
	t.Helper()
	found, err := tools()
	require(t, err)
	folder := t.TempDir()
	input := func(name string, data []byte) *engine.Input {
		path := filepath.Join(folder, name)
		require(t, os.WriteFile(path, data, 0o600))
		info, ok := probed.Load(string(data))
		if !ok {
			var err error
			info, err = found.ProbeImage(t.Context(), path, "image/jpeg")
			require(t, err)
			probed.Store(string(data), info)
		}
		return &engine.Input{Path: path, MIME: "image/jpeg", Info: info.(media.Info)}
	}
	spec := engine.Spec{
		Kind: kind, Prompt: prompt, Seed: seed, Data: input("data", jpeg), Size: frame.Box,
		Folder: folder, Output: filepath.Join(folder, "output.png"),
	}
	if reference != nil {
		spec.Reference = input("reference", reference)
	}
	if _, err := preview.New(found).Run(t.Context(), spec, func(engine.Progress) {}); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(spec.Output)
	require(t, err)
	picture, err := png.Decode(bytes.NewReader(out))
	require(t, err)
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
		e := editor(t, catalog.Edit)
		e.SetPrompt(t.Context(), prompt)
		live := edit(t, e, in)
		alike(t, fmt.Sprintf("%q", prompt), live, finished(t, catalog.Image, prompt, in, nil))
		if changed := difference(live, decoded(t, in), 1); changed < 3 {
			t.Errorf("%q changes the picture by %.2f only", prompt, changed)
		}
	}
}

func TestReferenceColorsAreApplied(t *testing.T) {
	in := frameOf(t, frame.Box, 1)
	reference, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "testdata", "reference.jpg"))
	require(t, err)
	for _, prompt := range []string{"", "watercolor"} {
		e := editor(t, catalog.Edit)
		e.SetPrompt(t.Context(), prompt)
		before := edit(t, e, in)
		e.SetImage(t.Context(), still(t, reference, "image/jpeg"))
		live := edit(t, e, in)
		alike(t, fmt.Sprintf("a reference and %q", prompt), live, finished(t, catalog.Image, prompt, in, reference))
		e.SetImage(t.Context(), nil)
		if d := difference(edit(t, e, in), before, 1); d != 0 {
			t.Errorf("%q: without the reference the picture differs by %.2f from the one before it", prompt, d)
		}
	}
}

// The prompt arrives while the first frame is being edited.
func TestPromptDuringFirstFrameApplies(t *testing.T) {
	in := frameOf(t, frame.Box, 1)
	fresh := editor(t, catalog.Edit)
	fresh.SetPrompt(t.Context(), "film noir")
	want := edit(t, fresh, in)
	for range 4 {
		// The clock is read just before the first frame's look is prepared, which takes a while.
		making := make(chan struct{})
		begun := sync.OnceFunc(func() { close(making) })
		clock := func() time.Time {
			begun()
			return time.Unix(0, 0)
		}
		e, err := frame.New(clock, func() uint32 { return seed }).Open(t.Context(), &catalog.Model{Kind: catalog.Edit})
		require(t, err)
		e.SetPrompt(t.Context(), "watercolor")
		var setting sync.WaitGroup
		setting.Go(func() {
			<-making
			e.SetPrompt(t.Context(), "film noir")
		})
		edit(t, e, in)
		setting.Wait()
		if d := difference(want, edit(t, e, in), 1); d != 0 {
			t.Fatalf("the prompt is lost: the second frame differs by %.2f", d)
		}
		e.Close()
	}
}

func TestSnowMoves(t *testing.T) {
	now := time.Unix(0, 0)
	e, err := frame.New(func() time.Time { return now }, func() uint32 { return seed }).Open(t.Context(), &catalog.Model{Kind: catalog.Edit})
	require(t, err)
	defer e.Close()
	e.SetPrompt(t.Context(), "snow")
	in := frameOf(t, frame.Box, 1)
	first := edit(t, e, in)
	now = now.Add(time.Second / 2)
	if d := difference(first, edit(t, e, in), 1); d < 0.5 {
		t.Errorf("half a second later the frame differs by %.2f only", d)
	}
	now = now.Add(1000 * time.Hour)
	edit(t, e, in)
}

// A limited-range picture is edited like the same picture in full range.
func TestPictureRangeIsKept(t *testing.T) {
	full := pictureOf(t, frameOf(t, frame.Box, 1))
	scale := func(levels int) func(uint8) uint8 {
		return func(v uint8) uint8 { return uint8((int(v)*levels+127)/255 + 16) }
	}
	narrow := &engine.Picture{Narrow: true, YCbCr: *copied(&full.YCbCr, scale(219), scale(224))}
	for _, prompt := range []string{"", "watercolor"} {
		e := editor(t, catalog.Edit)
		e.SetPrompt(t.Context(), prompt)
		want := edited(t, e, full)
		out, err := e.Edit(t.Context(), narrow)
		require(t, err)
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
