package person

import (
	_ "embed"
	"fmt"
	"sync"

	pigo "github.com/esimov/pigo/core"

	"cutroom/shared/domain/catalog"
)

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
