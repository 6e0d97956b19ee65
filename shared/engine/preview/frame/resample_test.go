package frame

import (
	"math/rand/v2"
	"testing"
)

// TestDouble: what becomes twice as large in one go is what the taps make of it, but for
// rounding.
func TestDouble(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range [][2]int{{1, 1}, {1, 9}, {9, 1}, {8, 8}, {37, 5}, {64, 33}} {
		width, height := size[0], size[1]
		stride := width + 3
		from := make([]uint8, stride*height)
		for i := range from {
			from[i] = uint8(random.Uint32())
		}
		quick := newResampler(width, height, 2*width, 2*height)
		taps := &resampler{
			width: 2 * width, height: 2 * height, fromWidth: width,
			across: tapsOf(width, 2*width), down: tapsOf(height, 2*height), squeezed: make([]uint8, 2*width*height),
		}
		got, want := make([]uint8, 4*width*height), make([]uint8, 4*width*height)
		quick.scale(got, from, stride)
		taps.scale(want, from, stride)
		for i := range got {
			if distance(int(got[i]), int(want[i])) > 1 {
				t.Fatalf("%dx%d: pixel %d is %d, want %d", width, height, i, got[i], want[i])
			}
		}
	}
}
