package garment_test

import (
	"fmt"
	"image/color"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/garment"
)

// plain returns a reference of one color with a pixel of another color in the middle.
func plain(size catalog.Size, fill, middle color.NRGBA) *garment.Reference {
	pixels := make([]byte, 0, 4*size.Width*size.Height)
	for range size.Width * size.Height {
		pixels = append(pixels, fill.R, fill.G, fill.B, fill.A)
	}
	at := 4 * (size.Height/2*size.Width + size.Width/2)
	copy(pixels[at:], []byte{middle.R, middle.G, middle.B, middle.A})
	return &garment.Reference{Size: size, Pixels: pixels}
}

// The reference may have any size, and may show nothing but its background.
func TestClothIsDrawnFromAnyReference(t *testing.T) {
	red, blue, clear := color.NRGBA{200, 20, 20, 255}, color.NRGBA{20, 20, 200, 255}, color.NRGBA{}
	for _, size := range []catalog.Size{
		{Width: 1, Height: 1}, {Width: 1, Height: 7}, {Width: 7, Height: 1}, {Width: 2, Height: 2}, {Width: 7, Height: 7},
		{Width: 8, Height: 8}, {Width: 384, Height: 1}, {Width: 1, Height: 384}, {Width: 384, Height: 384},
	} {
		for name, reference := range map[string]*garment.Reference{
			"of one colour": plain(size, red, red), "with a point": plain(size, red, blue),
			"transparent": plain(size, clear, clear),
		} {
			t.Run(fmt.Sprint(size, " ", name), func(t *testing.T) {
				for _, prompt := range []string{"", "a silk dress"} {
					for _, to := range []catalog.Size{{Width: 640, Height: 360}, {Width: 2, Height: 640}, {Width: 1, Height: 1}} {
						if got := garment.Cloth(reference, prompt, 7, to).Bounds().Size(); got.X != to.Width || got.Y != to.Height {
							t.Errorf("a cloth of %v, want %v", got, to)
						}
					}
				}
			})
		}
	}
	cloth := garment.Cloth(plain(catalog.Size{Width: 1, Height: 1}, red, red), "", 7, catalog.Size{Width: 16, Height: 16})
	if got := color.NRGBAModel.Convert(cloth.At(8, 8)); got != red {
		t.Errorf("the cloth is %v, want %v", got, red)
	}
}

func TestClothIsDrawnFromEmptyReference(t *testing.T) {
	size := catalog.Size{Width: 16, Height: 16}
	if got := garment.Cloth(&garment.Reference{}, "", 7, size).Bounds().Size(); got.X != 16 || got.Y != 16 {
		t.Errorf("a cloth of %v", got)
	}
}

// Empty and tiny frames have no face. A false claim that they do is harmless.
func TestFindHandlesAnyFrame(t *testing.T) {
	for _, size := range []catalog.Size{
		{Width: 1, Height: 1}, {Width: 2, Height: 160}, {Width: 160, Height: 2}, {Width: 160, Height: 90},
	} {
		for _, level := range []byte{0, 128, 255} {
			pixels := make([]byte, 3*size.Width*size.Height)
			for i := range pixels {
				pixels[i] = level
			}
			face, seen, err := garment.FindFace(pixels, size)
			if seen || err != nil {
				t.Errorf("%v of %d: a face %+v, %v", size, level, face, err)
			}
			found := garment.Find([]garment.Shot{{Pixels: pixels, Face: garment.Face{X: 0.5, Y: 0.2, Size: 0.1}}}, size)
			for _, table := range []interface {
				At(r, g, b float64) (float64, float64, float64)
			}{found.Table, found.Shade()} {
				if r, _, _ := table.At(0.5, 0.5, 0.5); !(r >= 0 && r <= 1) {
					t.Errorf("%v of %d: a gray of %v", size, level, r)
				}
			}
		}
	}
	garment.Find(nil, catalog.Size{})
}
