package person_test

import (
	"math"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/person"
	"cutroom/shared/testkit/pixeltest"
)

var landscape = catalog.Size{Width: 256, Height: 144}

// drawn returns a picture of a figure in front of a sky.
func drawn(height int) []byte {
	square := func(v int) int { return v * v }
	var picture []byte
	for y := range height {
		for x := range landscape.Width {
			side := max(x-128, 128-x)
			pixel := []byte{uint8(40 + y/2), uint8(90 + x/4), 150}
			if y >= 70 && side < 18 {
				pixel = []byte{200, 150, 120}
			}
			if y >= 90 && side < y-60 {
				pixel = []byte{160, 40, 50}
			}
			if 4*square(side)+3*square(y-50) < 4000 {
				pixel = []byte{210, 160, 130}
			}
			if y < 38 && 4*square(side)+5*square(y-32) < 2400 {
				pixel = []byte{60, 40, 30}
			}
			if y >= 48 && y <= 50 && max(side-12, 12-side) < 4 {
				pixel = []byte{30, 20, 20}
			}
			if (y == 64 || y == 65) && side < 8 {
				pixel = []byte{150, 60, 60}
			}
			picture = append(picture, pixel...)
		}
	}
	return picture
}

func maskOf(t testing.TB, picture []byte, size catalog.Size) []uint8 {
	t.Helper()
	finder, err := person.NewFinder(size)
	pixeltest.Require(t, err)
	mask := make([]uint8, size.Width*size.Height)
	finder.Mask(picture, mask)
	return mask
}

// The expected values were computed from the original files by the tflite runtime 2.3.0 (package ai-edge-litert).
func TestMasksEqualTheOriginalNetworks(t *testing.T) {
	type point struct {
		y, x int
		want float64
	}
	for _, c := range []struct {
		size   catalog.Size
		mean   float64
		points []point
	}{
		{landscape, 0.272794, []point{
			{11, 120, 0.3395}, {24, 105, 0.1461}, {41, 97, 0.6208}, {64, 98, 0.1092}, {80, 108, 0.2361}, {89, 147, 0.1727},
			{97, 91, 0.8932}, {107, 81, 0.8237}, {115, 183, 0.1275}, {125, 63, 0.8068}, {134, 202, 0.1475}, {142, 209, 0.6458},
		}},
		{catalog.Size{Width: 256, Height: 256}, 0.559775, []point{
			{11, 120, 0.1034}, {31, 154, 0.4163}, {80, 146, 0.9159}, {99, 166, 0.8378}, {124, 192, 0.1908}, {147, 42, 0.8922},
		}},
	} {
		mask, sum := maskOf(t, drawn(c.size.Height), c.size), 0.0
		for _, v := range mask {
			sum += float64(v)
		}
		if mean := sum / 255 / float64(len(mask)); math.Abs(mean-c.mean) > 0.001 {
			t.Errorf("%v: the mean is %.5f, want %.5f", c.size, mean, c.mean)
		}
		for _, p := range c.points {
			if got := float64(mask[p.y*c.size.Width+p.x]) / 255; math.Abs(got-p.want) > 0.004 {
				t.Errorf("%v, row %d, column %d: %.4f, want %.4f", c.size, p.y, p.x, got, p.want)
			}
		}
	}
}

// A blank picture starts a new scene, without people.
func TestMasksRestartAtCuts(t *testing.T) {
	finder, err := person.NewFinder(landscape)
	pixeltest.Require(t, err)
	mask := make([]uint8, landscape.Width*landscape.Height)
	finder.Mask(drawn(landscape.Height), mask)
	blank := make([]byte, len(drawn(landscape.Height)))
	finder.Mask(blank, mask)
	for i, v := range maskOf(t, blank, landscape) {
		if v != mask[i] {
			t.Fatalf("pixel %d is %d after the cut, and %d without the pictures before it", i, mask[i], v)
		}
	}
}
