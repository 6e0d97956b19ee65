package look

import (
	"bytes"
	"image"
	"image/color"
	"math"
	"strings"
	"sync"
	"testing"

	"cutroom/shared/platform/panics"
)

func bytesOf(picture image.Image) []byte {
	switch p := picture.(type) {
	case *image.Gray:
		return p.Pix
	case *image.RGBA:
		return p.Pix
	}
	return nil
}

var made = sync.OnceValue(func() map[string][]Op {
	all := map[string][]Op{}
	for _, e := range lexicon() {
		all[e.name] = e.ops()
	}
	return all
})

// If a texture is random, different seeds give different pictures. A moving texture has a margin.
func TestTexturesDependOnSeed(t *testing.T) {
	const width, height = 96, 54
	margin := newSheet(width, height, 1, Motion{Hold: 1}).Height - height
	varied := 0
	for name, ops := range made() {
		for i, op := range ops {
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
				t.Errorf("%s: operation %d draws nothing", name, i)
			}
			for k := range first {
				if first[k].Bounds() != want {
					t.Errorf("%s: operation %d draws %v, want %v", name, i, first[k].Bounds(), want)
				}
				if !bytes.Equal(bytesOf(first[k]), bytesOf(again[k])) {
					t.Errorf("%s: operation %d draws differently each time", name, i)
				}
				if !bytes.Equal(bytesOf(first[k]), bytesOf(other[k])) {
					varied++
				}
			}
		}
	}
	if varied < 40 {
		t.Errorf("the seed varies %d textures only", varied)
	}
}

// Moving textures leave on one side and reenter on the other.
func TestMovingTexturesHaveNoSeam(t *testing.T) {
	const width, height = 160, 90
	for name, ops := range made() {
		for i, op := range ops {
			layer, ok := op.(Layer)
			if !ok || layer.Motion.Right == 0 && layer.Motion.Down == 0 {
				continue
			}
			picture := layer.Draw(width, height, 3)
			gray := func(x, y int) float64 {
				return float64(color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y)
			}
			// The step across the border is compared with the largest step next to it.
			for _, axis := range []string{"across", "down"} {
				if axis == "across" && layer.Motion.Right == 0 || axis == "down" && layer.Motion.Down == 0 {
					continue
				}
				step := func(at int) float64 {
					sum := 0.0
					if axis == "across" {
						for y := range height {
							sum += math.Abs(gray(at%width, y)-gray((at+1)%width, y)) / height
						}
					} else {
						for x := range width {
							sum += math.Abs(gray(x, at%height)-gray(x, (at+1)%height)) / width
						}
					}
					return sum
				}
				side := map[string]int{"across": width, "down": height}[axis]
				usual := 0.0
				for at := range side - 1 {
					usual = max(usual, step(at))
				}
				if seam := step(side - 1); seam > 1.5*usual+1 {
					t.Errorf("%s: operation %d has a seam %s: a step of %.1f, elsewhere at most %.1f", name, i, axis, seam, usual)
				}
			}
		}
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

// Several layers of the same kind have the same effect as one combined picture.
func TestLayersAreCombined(t *testing.T) {
	value := func(v float32) Texture {
		return func(s *Sheet) {
			for i := range s.Values {
				s.Values[i] = max(s.Values[i], v) // shapes combine values in this way
			}
		}
	}
	for _, c := range []struct {
		first, second Layer
		want          uint8
	}{
		{add(value(0.6)), add(value(0.7)), 204},
		{multiply(value(0.5)), multiply(value(0.4)), 51},
		{screen(value(0.5), 1, 1, 1), screen(value(0.6), 1, 1, 1), 204},
	} {
		fused := fuse([]Op{c.first, c.second})
		if len(fused) != 1 {
			t.Errorf("%v: %d operations", c.first.Mode, len(fused))
			continue
		}
		if got := fused[0].(Layer).Draw(8, 8, 1).(*image.Gray).GrayAt(3, 3).Y; got != c.want {
			t.Errorf("%v: %d is drawn, want %d", c.first.Mode, got, c.want)
		}
	}
	still := add(value(0.6))
	for _, other := range []Layer{still.jumping(4), multiply(value(0.5)), screen(value(0.5), 1, 0.5, 0)} {
		if fused := fuse([]Op{still, other}); len(fused) != 2 {
			t.Errorf("%v of %+v became one with another", other.Mode, other.Motion)
		}
	}
}
