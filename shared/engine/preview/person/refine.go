package person

import (
	"math"

	"cutroom/shared/domain/catalog"
)

const (
	// reach is the distance, in pixels of a mask, to the pixels that decide about an uncertain one.
	reach = 3
	// Below unlikely and above likely, a pixel of a mask is sure.
	unlikely, likely = 20, 235
)

// Refine returns a mask of the picture's size, which is a whole number of times larger than the given mask. At edges,
// each pixel gets the mean of the sure pixels around it with similar colors. small is the picture at the mask's size.
// It is a joint bilateral upsampling (Kopf et al., 2007).
func Refine(mask, small []byte, size catalog.Size, picture []byte, by int) []byte {
	var sure [256]float32
	for v := range sure {
		d := float32(v)/127.5 - 1
		sure[v] = d*d*d*d + 0.001
	}
	var alike [3*255 + 1]float32
	for d := range alike {
		alike[d] = float32(math.Exp(-float64(d*d)/(2*30*30))) + 0.0001
	}
	near := make([]float32, by*(2*reach+1))
	for i := range near {
		d := float64(i/by-reach) - (float64(i%by)+0.5)/float64(by) + 0.5
		near[i] = float32(math.Exp(-d * d / (2 * reach * reach / 4)))
	}
	fine, width := make([]byte, len(mask)*by*by), size.Width*by
	for at, v := range mask {
		x, y := at%size.Width, at/size.Width
		left, right := max(0, x-reach), min(size.Width, x+reach+1)
		top, bottom := max(0, y-reach), min(size.Height, y+reach+1)
		for i := range by * by {
			to := (y*by+i/by)*width + x*by + i%by
			if fine[to] = v; v > likely || v < unlikely {
				continue
			}
			r, g, b := int(picture[3*to]), int(picture[3*to+1]), int(picture[3*to+2])
			var sum, weights float32
			for row := top; row < bottom; row++ {
				down := near[(row-y+reach)*by+i/by]
				for column := left; column < right; column++ {
					from := row*size.Width + column
					c := small[3*from:][:3]
					d := max(r-int(c[0]), int(c[0])-r) + max(g-int(c[1]), int(c[1])-g) + max(b-int(c[2]), int(c[2])-b)
					weight := down * near[(column-x+reach)*by+i%by] * alike[d] * sure[mask[from]]
					sum, weights = sum+weight*float32(mask[from]), weights+weight
				}
			}
			fine[to] = byte(sum/weights + 0.5)
		}
	}
	return fine
}
