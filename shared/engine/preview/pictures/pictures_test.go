package pictures_test

import (
	"bytes"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"testing"

	"cutroom/shared/engine/preview/frame"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/pictures"
)

func TestEveryLookHasAPicture(t *testing.T) {
	known := map[string]bool{pictures.File(pictures.Original): true}
	for _, name := range append(look.Names(), pictures.Original) {
		known[pictures.File(name)] = true
		content, err := pictures.Of(name)
		if err != nil {
			t.Error(err)
			continue
		}
		picture, err := jpeg.DecodeConfig(bytes.NewReader(content))
		if err != nil || picture.Width != pictures.Size.Width || picture.Height != pictures.Size.Height {
			t.Errorf("%s: %+v, %v", name, picture, err)
		}
	}
	files, err := filepath.Glob("*.jpg")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !known[file] {
			t.Errorf("%s is the picture of no look", file)
		}
	}
	if _, err := pictures.Of("no look"); err == nil {
		t.Error("there is a picture of no look")
	}
}

// The test redraws a few pictures. If it fails, run go generate in this folder.
func TestPicturesAreUpToDate(t *testing.T) {
	sample, err := os.ReadFile(filepath.Join("draw", "sample.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range look.Names() {
		if i%11 != 5 {
			continue
		}
		drawn, err := frame.Sample(sample, name, pictures.Size)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := pictures.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(t, drawn, kept); d > 4 {
			t.Errorf("%s differs from the engine's picture by %.1f", name, d)
		}
	}
}

func difference(t *testing.T, a, b []byte) float64 {
	t.Helper()
	first, err := jpeg.Decode(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	second, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for y := range pictures.Size.Height {
		for x := range pictures.Size.Width {
			r, g, b, _ := first.At(x, y).RGBA()
			r2, g2, b2, _ := second.At(x, y).RGBA()
			sum += math.Abs(float64(r+g+b) - float64(r2+g2+b2))
		}
	}
	return sum / 3 / 257 / float64(pictures.Size.Width*pictures.Size.Height)
}
