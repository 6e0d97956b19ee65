// Package scene paints moving pictures: landscapes and abstractions that are computed from a seed,
// point by point, like a fragment shader. It stands in for a text-to-video model.
//
// A scene is a pure function of its seed, the position in the picture and the time, so the same
// request produces the same frames.
package scene

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"cutroom/shared/engine/preview/look/noise"
	"cutroom/shared/platform/panics"
)

type Scene struct {
	// Name is the scene's subject, such as "bay".
	Name string
	// at prepares the scene for a time in seconds and an aspect ratio (width / height).
	at func(seconds, aspect float64) shader
}

// shader returns the color at x, from 0 to the aspect ratio, and y, from 0 at the top to 1.
type shader func(x, y float64) rgb

// Paint draws the scene at the given time, in seconds, into the frame: rows from the top, three bytes per pixel.
func (s Scene) Paint(ctx context.Context, frame []byte, width, height int, seconds float64) error {
	shade := s.at(seconds, float64(width)/float64(height))
	scale := 1 / float64(height)
	group, ctx := errgroup.WithContext(ctx)
	// Use as many goroutines as textures do; see look.Sheet.
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)/2))
	const band = 16
	for top := 0; top < height; top += band {
		group.Go(func() (err error) {
			defer panics.Error(&err)
			for y := top; y < min(top+band, height); y++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				row := frame[y*width*3:][:width*3]
				for x := range width {
					c := shade((float64(x)+0.5)*scale, (float64(y)+0.5)*scale)
					// A little noise before rounding prevents banding in smooth skies.
					dither := float64(noise.Mix(uint64(y*width+x))&0xff)/255 - 0.5
					row[x*3], row[x*3+1], row[x*3+2] = level(c.r, dither), level(c.g, dither), level(c.b, dither)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func level(v, dither float64) byte { return byte(clamp(v+dither/255)*255 + 0.5) }
