package main

import (
	"image"
	"image/color"
	"math"
)

// outline is the left half of a striped jersey, from the middle of the collar
// round to the middle of the hem; the right half mirrors it.
var outline = [][2]float64{
	{0, 0.13}, {-0.06, 0.12}, {-0.12, 0.08}, {-0.22, 0.11}, {-0.33, 0.19}, {-0.45, 0.50},
	{-0.34, 0.55}, {-0.265, 0.37}, {-0.25, 0.60}, {-0.26, 0.92}, {-0.13, 0.94}, {0, 0.945},
}

// garment is the jersey on white, sharp by averaging over each pixel.
func garment() image.Image {
	const side, fine = 400, 3
	navy, cream, white := [3]float64{24, 44, 96}, [3]float64{244, 236, 218}, [3]float64{255, 255, 255}
	picture := image.NewNRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			var sum [3]float64
			for i := range fine * fine {
				u := (float64(x)+(float64(i%fine)+0.5)/fine)/side - 0.5
				v := (float64(y) + (float64(i/fine)+0.5)/fine) / side
				c := white
				if inside(-math.Abs(u), v) {
					c = cream
					// Stripes sag a little, and follow the sleeves.
					at := v + 0.35*u*u
					if math.Abs(u) > 0.27 {
						at = 1.1*math.Abs(u) + 0.35*v
					}
					if math.Mod(at, 0.085) < 0.042 || v < 0.165-0.6*math.Abs(u) {
						c = navy
					}
				}
				for channel := range sum {
					sum[channel] += c[channel] / (fine * fine)
				}
			}
			picture.SetNRGBA(x, y, color.NRGBA{uint8(sum[0]), uint8(sum[1]), uint8(sum[2]), 255})
		}
	}
	return picture
}

// inside reports whether a place of the left half is on the garment.
func inside(x, y float64) bool {
	odd := false
	for i, j := 0, len(outline)-1; i < len(outline); j, i = i, i+1 {
		a, b := outline[i], outline[j]
		if (a[1] > y) != (b[1] > y) && x < (b[0]-a[0])*(y-a[1])/(b[1]-a[1])+a[0] {
			odd = !odd
		}
	}
	return odd
}
