package look

import (
	"bytes"
	"image"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/engine/preview/look/oklab"
	"cutroom/shared/platform/panics"
	"cutroom/shared/testkit/pixeltest"
)

// If a texture is random, different seeds give different pictures. A moving texture has a margin.
func TestTexturesDependOnSeed(t *testing.T) {
	const width, height = 96, 54
	margin := newSheet(width, height, 1, Motion{Hold: 1}).Height - height
	varied := 0
	for _, e := range lexicon() {
		for i, op := range e.ops() {
			var draw func(seed uint32) []image.Image
			var motion Motion
			switch op := op.(type) {
			case Layer:
				motion = op.Motion
				draw = func(seed uint32) []image.Image { return []image.Image{op.Draw(width, height, seed)} }
			case Warp:
				motion = op.Motion
				draw = func(seed uint32) []image.Image {
					across, down := op.Draw(width, height, seed)
					return []image.Image{across, down}
				}
			default:
				continue
			}
			want := image.Rect(0, 0, width, height)
			if motion.Hold > 0 {
				want = image.Rect(0, 0, width+margin, height+margin)
			}
			first, again, other := draw(1), draw(1), draw(2)
			if len(first) == 0 {
				t.Errorf("%s: operation %d draws nothing", e.name, i)
			}
			for k := range first {
				if first[k].Bounds() != want {
					t.Errorf("%s: operation %d draws %v, want %v", e.name, i, first[k].Bounds(), want)
				}
			}
			if !reflect.DeepEqual(first, again) {
				t.Errorf("%s: operation %d draws differently each time", e.name, i)
			}
			if !reflect.DeepEqual(first, other) {
				varied++
			}
		}
	}
	if varied < 40 {
		t.Errorf("the seed varies %d textures only", varied)
	}
}

// Several goroutines draw rows. If one panics, the caller can recover from the panic.
func TestTexturePanicReachesCaller(t *testing.T) {
	draw := func() (err error) {
		defer panics.Error(&err)
		Layer{Texture: func(s *Sheet) { s.fill(func(_, _ float64) float64 { panic("a fault") }) }}.Draw(16, 16, 1)
		return nil
	}
	if err := draw(); err == nil || !strings.Contains(err.Error(), "a fault") {
		t.Errorf("got %v", err)
	}
}

func TestLUTAppliesAdjustments(t *testing.T) {
	same := NewLUT()
	invertAll := LUTOf(func(r, g, b float64) (float64, float64, float64) { return 1 - r, 1 - g, 1 - b })
	for _, c := range [][3]float64{{0, 0, 0}, {1, 1, 1}, {0.2, 0.5, 0.8}, {0.013, 0.99, 0.41}} {
		if r, g, b := same.At(c[0], c[1], c[2]); distance([3]float64{r, g, b}, c) > 0.004 {
			t.Errorf("no adjustment turns %v to %.3f %.3f %.3f", c, r, g, b)
		}
		if r, g, b := invertAll.Then(invertAll).At(c[0], c[1], c[2]); distance([3]float64{r, g, b}, c) > 1e-5 {
			t.Errorf("inverted twice %v is %.3f %.3f %.3f", c, r, g, b)
		}
	}
	if !slices.Equal(Parse("invert", 0).Ops[0].(Grade).LUT.values, invertAll.values) {
		t.Error("invert does not negate the colors")
	}
	if r, _, _ := same.At(-1, 2, math.NaN()); r > 1e-5 {
		t.Errorf("below black lies %g", r)
	}
	var out bytes.Buffer
	pixeltest.Require(t, invertAll.WriteM3D(&out))
	text := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(text) != 3+33*33*33 || text[0] != "in 35937" || text[1] != "out 65536" || text[2] != "values red green blue" {
		t.Fatalf("%d lines, the first are %q", len(text), text[:3])
	}
	// Blue varies fastest.
	if text[3] != "65535 65535 65535" || text[4] != "65535 65535 63487" || text[3+33] != "65535 63487 65535" ||
		text[3+33*33] != "63487 65535 65535" || text[len(text)-1] != "0 0 0" {
		t.Errorf("the table begins %q", strings.Join(text[3:5], " / "))
	}
}

// The values are from the page of Oklab's author.
func TestOklabMatchesPublishedValues(t *testing.T) {
	for _, c := range []struct{ rgb, lab [3]float64 }{
		{[3]float64{1, 1, 1}, [3]float64{1, 0, 0}},
		{[3]float64{1, 0, 0}, [3]float64{0.628, 0.225, 0.126}},
		{[3]float64{0, 1, 0}, [3]float64{0.866, -0.234, 0.179}},
		{[3]float64{0, 0, 1}, [3]float64{0.452, -0.032, -0.312}},
	} {
		got := oklab.FromSRGB(c.rgb[0], c.rgb[1], c.rgb[2])
		if distance([3]float64{got.L, got.A, got.B}, c.lab) > 0.002 {
			t.Errorf("%v is %v, want %v", c.rgb, got, c.lab)
		}
		r, g, b := got.SRGB()
		if distance([3]float64{r, g, b}, c.rgb) > 1e-4 {
			t.Errorf("%v comes back as %.4f %.4f %.4f", c.rgb, r, g, b)
		}
	}
}

func distance(a, b [3]float64) float64 {
	return max(math.Abs(a[0]-b[0]), math.Abs(a[1]-b[1]), math.Abs(a[2]-b[2]))
}
