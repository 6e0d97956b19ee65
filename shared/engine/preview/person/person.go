// Package person finds people and their faces in pictures.
package person

import (
	_ "embed"
	"fmt"
	"math"
	"sync"

	pigo "github.com/esimov/pigo/core"

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

// facefinder is the face classifier from package pigo (MIT, Endre Simo), a cascade of decision trees after Nenad
// Markuš, "Object Detection with Pixel Intensity Comparisons Organized in Decision Trees".
//
//go:embed facefinder
var facefinder []byte

// classifier loads the face detector, which is safe for concurrent use.
var classifier = sync.OnceValues(func() (*pigo.Pigo, error) {
	found, err := pigo.NewPigo().Unpack(facefinder)
	if err != nil {
		return nil, fmt.Errorf("person: the face classifier: %w", err)
	}
	return found, nil
})

const (
	// A face is at least minFace pixels wide.
	minFace = 22
	// Frontal faces score 20 and more. Other detections score below 5.
	minQuality = 9
)

// The lengths of a Face are fractions of the picture's width.
type Face struct {
	// X and Y are the center. Size is the width and height without the hair.
	X, Y, Size float64
}

// Faces returns the frontal faces in a picture with three bytes per pixel.
func Faces(picture []byte, size catalog.Size) ([]Face, error) {
	if min(size.Width, size.Height) < minFace {
		return nil, nil
	}
	finder, err := classifier()
	if err != nil {
		return nil, err
	}
	gray := make([]uint8, size.Width*size.Height)
	for i := range gray {
		p := picture[3*i:][:3]
		gray[i] = uint8((299*int(p[0]) + 587*int(p[1]) + 114*int(p[2])) / 1000)
	}
	detections := finder.RunCascade(pigo.CascadeParams{
		MinSize: minFace, MaxSize: min(size.Width, size.Height), ShiftFactor: 0.1, ScaleFactor: 1.1,
		ImageParams: pigo.ImageParams{Pixels: gray, Rows: size.Height, Cols: size.Width, Dim: size.Width},
	}, 0)
	var faces []Face
	for _, d := range finder.ClusterDetections(detections, 0.2) {
		if d.Q >= minQuality {
			width := float64(size.Width)
			faces = append(faces, Face{float64(d.Col) / width, float64(d.Row) / width, float64(d.Scale) / width})
		}
	}
	return faces, nil
}

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
