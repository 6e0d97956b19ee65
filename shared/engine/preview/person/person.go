// Package person finds people and their faces in pictures.
package person

import (
	"math"

	"cutroom/shared/domain/catalog"
)

const (
	// longer is the longer side of the networks' pictures. Sides must be multiples of step.
	longer = 256
	step   = 16
	// At this ratio of width to height and above, the network for landscapes is better.
	wide = 1.6
)

func SizeFor(picture catalog.Size) catalog.Size {
	side := func(share float64) int { return max(4, int(math.Round(longer*min(share, 1)/step))) * step }
	shape := float64(picture.Width) / float64(picture.Height)
	return catalog.Size{Width: side(shape), Height: side(1 / shape)}
}

// Finder finds the people in the consecutive pictures of a clip, or in one picture.
type Finder struct {
	picture tensor
	pass    pass
	mask    []float32
	last    []byte
	again   bool
}

func NewFinder(size catalog.Size) (*Finder, error) {
	network := square
	if float64(size.Width) >= wide*float64(size.Height) {
		network = landscape
	}
	layers, err := network()
	picture := tensor{size.Height, size.Width, 3, make([]float32, 3*size.Width*size.Height)}
	return &Finder{picture: picture, pass: pass{layers: layers}}, err
}

// Mask sets each pixel to how likely it shows a person, from 0 to 255. The picture has three bytes per pixel and the
// Finder's size. Masks change smoothly, except at cuts.
func (f *Finder) Mask(picture []byte, mask []uint8) {
	next := f.mask == nil || isCut(f.last, picture)
	// Every second mask is the previous mask. Refine moves its edges to the new picture's.
	if f.again = !f.again && !next; !f.again {
		for i, v := range picture {
			f.picture.values[i] = float32(v) / 255
		}
		found := f.pass.mask(f.picture).values
		if next {
			f.mask = append(f.mask[:0], found...)
		}
		for i, v := range found {
			// Where the network is uncertain, the mask follows the previous mask.
			sure := (2*v - 1) * (2*v - 1)
			f.mask[i] = v + (f.mask[i]-v)*(1-sure)*0.7
		}
	}
	for i, v := range f.mask {
		mask[i] = uint8(v*255 + 0.5)
	}
	f.last = append(f.last[:0], picture...)
}

// isCut reports whether two pictures differ so much that they show different scenes.
func isCut(last, next []byte) bool {
	const most = 40
	sum := 0
	for i, v := range next {
		sum += max(int(v)-int(last[i]), int(last[i])-int(v))
	}
	return sum > most*len(next)
}
