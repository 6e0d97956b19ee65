package frame

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestFastEnlargementMatchesSlowOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range [][2]int{{1, 1}, {1, 9}, {9, 1}, {8, 8}, {37, 5}, {64, 33}} {
		width, height := size[0], size[1]
		stride := width + 3
		from := noise(random, stride*height)
		for _, by := range []int{2, 4} {
			quick := newResampler(width, height, by*width, by*height)
			taps := &resampler{
				width: by * width, height: by * height, fromWidth: width,
				across: tapsOf(width, by*width), down: tapsOf(height, by*height), squeezed: make([]uint8, by*width*height),
			}
			got, want := make([]uint8, by*by*width*height), make([]uint8, by*by*width*height)
			quick.scale(got, from, stride)
			taps.scale(want, from, stride)
			alikeWithin(t, fmt.Sprintf("%dx%d by %d", width, height, by), got, want, 1)
		}
	}
}

func TestShrinkingAveragesPixels(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, size := range [][2]int{{1, 1}, {3, 2}, {4, 4}, {9, 5}, {21, 3}} {
		width, height := size[0], size[1]
		for _, by := range []int{1, 2, 3, 4, 5} {
			stride := by*width + 3
			from := noise(random, stride*by*height)
			var want []uint8
			for y := range height {
				for x := range width {
					sum := by * by / 2
					for i := range by * by {
						sum += int(from[(y*by+i/by)*stride+x*by+i%by])
					}
					want = append(want, uint8(sum/(by*by)))
				}
			}
			got := make([]uint8, width*height)
			newResampler(by*width, by*height, width, height).scale(got, from, stride)
			alikeWithin(t, fmt.Sprintf("%dx%d by %d", width, height, by), got, want, 0)
		}
	}
}

// Layers process eight pixels at a time. The result must be the same as for single pixels.
func TestLayersMatchSinglePixels(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for name, do := range map[string]func(to, from []uint8){"multiply": multiply, "screen": screen, "add": add} {
		to, from := noise(random, 1003), noise(random, 1003)
		copy(from[80:], make([]uint8, 40))
		for i := range 40 {
			from[160+i] = 255
		}
		var want []uint8
		for i := range to {
			one := []uint8{to[i]}
			do(one, from[i:][:1])
			want = append(want, one...)
		}
		for i, v := range want {
			exact := map[string]int{
				"multiply": int(to[i]) * int(from[i]) / 255, "screen": 255 - (255-int(to[i]))*(255-int(from[i]))/255,
				"add": min(255, max(0, int(to[i])+int(from[i])-128)),
			}[name]
			if int(v) != exact {
				t.Fatalf("%s: %d and %d are %d, want %d", name, to[i], from[i], v, exact)
			}
		}
		do(to, from)
		alikeWithin(t, name, to, want, 0)
	}
}

func TestSharpeningMatchesSinglePixels(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, amount := range []float64{0.3, 0.5, 1.1, 1.5} {
		plane, blurred := noise(random, 1003), noise(random, 1003)
		var want []uint8
		for i, v := range plane {
			sharp := float64(v) + amount*(float64(v)-float64(blurred[i]))
			want = append(want, uint8(min(255, max(0, sharp+0.5))))
		}
		newSharpener(amount).apply(plane, blurred)
		alikeWithin(t, fmt.Sprint(amount), plane, want, 3) // amounts are rounded to steps of 1/64
	}
}

func noise(random *rand.Rand, length int) []uint8 {
	levels := make([]uint8, length)
	for i := range levels {
		levels[i] = uint8(random.Uint32())
	}
	return levels
}

func alikeWithin(t *testing.T, what string, got, want []uint8, most int) {
	t.Helper()
	for i := range got {
		if d := int(got[i]) - int(want[i]); max(d, -d) > most {
			t.Fatalf("%s: pixel %d is %d, want %d", what, i, got[i], want[i])
		}
	}
}
