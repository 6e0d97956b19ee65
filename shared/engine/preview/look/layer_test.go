package look

import (
	"image"
	"reflect"
	"strings"
	"testing"

	"cutroom/shared/platform/panics"
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
