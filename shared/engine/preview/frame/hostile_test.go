package frame_test

import (
	"bytes"
	"fmt"
	"image"
	"math/rand/v2"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/engine/preview/look"
)

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
	ask := func(prompt string) engine.LiveEditor {
		e := editor(t, catalog.Edit)
		e.SetPrompt(t.Context(), prompt)
		return e
	}
	turn := 0
	for i := 0; i < len(names); i += 5 { // only every fifth look, to keep the test fast
		prompt := names[i]
		for n := range i / 5 % 3 { // combine some of the looks
			prompt += " " + names[(i+7+12*n)%len(names)]
		}
		session := ask(prompt)
		for range 2 {
			size, ratio := hostileSizes[turn%len(hostileSizes)], subsamplings[turn%len(subsamplings)]
			in := &engine.Picture{YCbCr: *noisy(size, ratio, random), Narrow: turn%4 < 2}
			turn++
			what := fmt.Sprintf("%q, %v, %v", prompt, size, in.SubsampleRatio)
			wantPicture(t, what, edited(t, session, in), edited(t, ask(prompt), in), in)
		}
	}
}

// wantPicture compares a session's picture with a new session's, and checks the lengths of its planes.
func wantPicture(t *testing.T, what string, session, fresh image.Image, in *engine.Picture) {
	t.Helper()
	got, want := session.(*image.YCbCr), fresh.(*image.YCbCr)
	size := frame.Box.Fit(catalog.Size{Width: in.Rect.Dx(), Height: in.Rect.Dy()})
	chroma := (size.Width + 1) / 2 * ((size.Height + 1) / 2)
	if got.Rect.Size() != image.Pt(size.Width, size.Height) || got.SubsampleRatio != image.YCbCrSubsampleRatio420 ||
		len(got.Y) != size.Width*size.Height || len(got.Cb) != chroma || len(got.Cr) != chroma {
		t.Errorf("%s: %v with planes of %d, %d and %d", what, got.Rect, len(got.Y), len(got.Cb), len(got.Cr))
	}
	if !bytes.Equal(got.Y, want.Y) || !bytes.Equal(got.Cb, want.Cb) || !bytes.Equal(got.Cr, want.Cr) {
		t.Errorf("%s: an earlier picture is visible in it", what)
	}
}
