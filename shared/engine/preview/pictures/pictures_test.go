package pictures_test

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/image/draw"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/pictures"
	"cutroom/shared/testkit/pixeltest"
)

var update = flag.Bool("update", false, "write all pictures instead of comparing a few")

// If the test fails, run go generate in this folder.
func TestPicturesAreUpToDate(t *testing.T) {
	encoded, err := os.ReadFile(filepath.Join("testdata", "sample.jpg"))
	pixeltest.Require(t, err)
	sample := decoded(t, encoded)
	for i, name := range append(look.Names(), "") {
		kept, err := pictures.Of(cmp.Or(name, pictures.Original))
		if picture, _ := jpeg.DecodeConfig(bytes.NewReader(kept)); err != nil || picture.Width != pictures.Size.Width {
			t.Errorf("%s: %+v, %v", name, picture, err)
		}
		if i%11 != 5 && !*update {
			continue
		}
		live, err := frame.New(time.Now, func() uint32 { return 1 }).Open(t.Context(), &catalog.Model{Kind: catalog.Edit})
		pixeltest.Require(t, err)
		live.SetPrompt(t.Context(), name)
		edited, err := live.Edit(t.Context(), &engine.Picture{YCbCr: *sample.(*image.YCbCr)})
		pixeltest.Require(t, err)
		small := image.NewRGBA(image.Rect(0, 0, pictures.Size.Width, pictures.Size.Height))
		draw.BiLinear.Scale(small, small.Rect, &edited.YCbCr, edited.Rect, draw.Src, nil)
		var drawn bytes.Buffer
		pixeltest.Require(t, jpeg.Encode(&drawn, small, &jpeg.Options{Quality: 82}))
		if name = cmp.Or(name, pictures.Original); *update {
			pixeltest.Require(t, os.WriteFile(pictures.File(name), drawn.Bytes(), 0o644))
			continue
		}
		if d := pixeltest.Of(decoded(t, drawn.Bytes())).Apart(pixeltest.Of(decoded(t, kept)), 1); d > 4 {
			t.Errorf("%s differs from the engine's picture by %.1f", name, d)
		}
	}
}

func decoded(t *testing.T, encoded []byte) image.Image {
	t.Helper()
	picture, err := jpeg.Decode(bytes.NewReader(encoded))
	pixeltest.Require(t, err)
	return picture
}
