package garment

import (
	_ "embed"
	"fmt"
	"math"
	"sync"

	pigo "github.com/esimov/pigo/core"

	"cutroom/shared/domain/catalog"
)

// facefinder is the face classifier from package pigo (MIT, Endre Simo), a cascade
// of decision trees after Nenad Markuš, "Object Detection with Pixel Intensity
// Comparisons Organized in Decision Trees".
//
//go:embed facefinder
var facefinder []byte

// classifier returns the face detector, which is safe for concurrent use.
var classifier = sync.OnceValues(func() (*pigo.Pigo, error) {
	found, err := pigo.NewPigo().Unpack(facefinder)
	if err != nil {
		return nil, fmt.Errorf("garment: the face classifier: %w", err)
	}
	return found, nil
})

const (
	// FaceSide is the longer side for the face search, in pixels. A face must be at least minFace
	// pixels wide.
	FaceSide = 400
	minFace  = 22
	// Frontal faces score 20 or more, other detections below 5.
	minQuality = 9
)

// Face is a detected face. All lengths are fractions of the picture's width.
type Face struct {
	// X and Y are the center. Size is the width and height, excluding the hair.
	X, Y, Size float64
}

// FindFace returns the largest frontal face in a picture with three bytes per pixel.
func FindFace(pixels []byte, size catalog.Size) (face Face, found bool, err error) {
	if min(size.Width, size.Height) < minFace {
		return face, false, nil
	}
	finder, err := classifier()
	if err != nil {
		return face, false, err
	}
	gray := make([]uint8, size.Width*size.Height)
	for i := range gray {
		p := pixels[3*i:][:3]
		gray[i] = uint8((299*int(p[0]) + 587*int(p[1]) + 114*int(p[2])) / 1000)
	}
	detections := finder.RunCascade(pigo.CascadeParams{
		MinSize: minFace, MaxSize: min(size.Width, size.Height), ShiftFactor: 0.1, ScaleFactor: 1.1,
		ImageParams: pigo.ImageParams{Pixels: gray, Rows: size.Height, Cols: size.Width, Dim: size.Width},
	}, 0)
	largest := 0
	for _, d := range finder.ClusterDetections(detections, 0.2) {
		if d.Q >= minQuality && d.Scale > largest {
			width := float64(size.Width)
			face = Face{float64(d.Col) / width, float64(d.Row) / width, float64(d.Scale) / width}
			largest = d.Scale
		}
	}
	return face, largest > 0, nil
}

// Torso returns how likely a position is to show the upper part of the clothes, 0 to 1. That area
// is below the chin and as wide as the shoulders. The position is in fractions of the picture's
// width.
func (f Face) Torso(x, y float64) float64 {
	u, v := math.Abs(x-f.X)/f.Size, (y-f.Y)/f.Size
	// The neckline is highest in the middle, and the shoulders slope down to the sides.
	top := 0.98 + 0.22*u
	if u < 0.42 {
		top += 0.10 * (1 - u/0.42)
	}
	half := min(1.85, 0.8+0.9*(v-0.9))
	return step(top-0.06, top+0.10, v) * step(half+0.12, half-0.25, u) * step(4.6, 3.9, v)
}

func (f Face) isHead(x, y float64) bool {
	u, v := (x-f.X)/f.Size, (y-f.Y)/f.Size
	return math.Hypot(u/0.62, (v+0.15)/0.85) < 1
}

func step(from, to, v float64) float64 {
	t := max(0, min(1, (v-from)/(to-from)))
	return t * t * (3 - 2*t)
}
