// Package person finds people and their faces in pictures.
package person

import (
	"math"

	"cutroom/shared/domain/catalog"
)

const (
	// The network was trained with pictures of this many pixels. Their sides must be multiples of step.
	pixels = 256 * 144
	step   = 16
)

// SizeFor returns the size of masks for pictures of a size.
func SizeFor(picture catalog.Size) catalog.Size {
	shape := math.Sqrt(float64(picture.Width) / float64(picture.Height))
	side := func(by float64) int { return max(2, int(math.Round(math.Sqrt(pixels)*by/step))) * step }
	return catalog.Size{Width: side(min(shape, 4)), Height: side(min(1/shape, 4))}
}

// Finder finds the people in the consecutive pictures of a clip, or in one picture.
type Finder struct {
	size catalog.Size
	pass pass
	mask []float32
	last []byte
}

func NewFinder(size catalog.Size) (*Finder, error) {
	layers, err := network()
	return &Finder{size: size, pass: pass{layers: layers}}, err
}

// Mask returns how likely each pixel shows a person, 0 to 255. The picture has three bytes per pixel
// and the Finder's size. Masks change smoothly, except at cuts. The result is valid until the next
// call.
func (f *Finder) Mask(picture []byte, mask []uint8) {
	in := tensor{f.size.Height, f.size.Width, 3, make([]float32, len(picture))}
	for i, v := range picture {
		in.values[i] = float32(v) / 255
	}
	found := f.pass.mask(in).values
	if f.mask == nil || isCut(f.last, picture) {
		f.mask = append(f.mask[:0], found...)
	}
	for i, v := range found {
		// Uncertain pixels follow the last mask.
		sure := (2*v - 1) * (2*v - 1)
		f.mask[i] = v + (f.mask[i]-v)*(1-sure)*0.7
		mask[i] = uint8(f.mask[i]*255 + 0.5)
	}
	f.last = append(f.last[:0], picture...)
}

// isCut reports whether two pictures differ like two scenes.
func isCut(last, next []byte) bool {
	const most = 40
	sum := 0
	for i, v := range next {
		sum += max(int(v)-int(last[i]), int(last[i])-int(v))
	}
	return sum > most*len(next)
}
