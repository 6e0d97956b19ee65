package look

import (
	"image"
	"math"
)

// Warp gives each pixel the color of another pixel, which is a whole number of pixels away.
type Warp struct {
	// Across and Down give the source of each point: 1/2 is the point itself, 0 is Reach to the left or above, and 1
	// is Reach to the right or below. nil means 1/2 everywhere.
	Across, Down Texture
	Reach        float64
	Motion       Motion
}

// Waves reports whether the warp moves smoothly, so that steps of two pixels would be visible.
func (w Warp) Waves() bool { return w.Motion.Right != 0 || w.Motion.Down != 0 }

// WarpZero is the level in a warp map that means no displacement. Each level above or below is one pixel.
const WarpZero = 128

// Draw draws the warp's maps for a size in pixels.
func (w Warp) Draw(width, height int, seed uint32) (across, down *image.Gray) {
	draw := func(texture Texture) *image.Gray {
		sheet := newSheet(width, height, seed, w.Motion)
		if texture == nil {
			texture = func(s *Sheet) { s.fill(func(_, _ float64) float64 { return 0.5 }) }
		}
		texture(sheet)
		picture := image.NewGray(image.Rect(0, 0, sheet.Width, sheet.Height))
		reach := 2 * w.Reach * sheet.Unit
		for i, v := range sheet.Values {
			picture.Pix[i] = uint8(max(0, min(255, math.Round((float64(v)-0.5)*reach)+WarpZero)))
		}
		return picture
	}
	return draw(w.Across), draw(w.Down)
}

// wobble is smooth noise, centered on 1/2. scale is the number of waves per unit. Each use in a look needs a
// different purpose.
func wobble(scale float64, purpose uint64) Texture {
	return func(s *Sheet) {
		waves := s.fractal(s.field(50+purpose), scale, 2)
		s.fill(func(x, y float64) float64 { return 0.5 + 0.75*waves.at(x, y) })
	}
}

// ripples draws seamless waves centered on 1/2. count is the number of waves over the height, or over the width if
// across is set.
func ripples(count int, across bool) Texture {
	return func(s *Sheet) {
		width, height := s.aspect()
		s.fill(s.smooth(1.0/240, func(x, y float64) float64 {
			u, v := y/height*2*math.Pi, x/width*2*math.Pi
			if across {
				u, v = v, u
			}
			n := float64(count)
			return 0.5 + 0.3*math.Sin(u*n+1.2*math.Sin(v*2)) + 0.2*math.Sin(u*(2*n+1)+2*math.Sin(v*3+1))
		}).at)
	}
}

// tracking is the displacement of a worn tape: each line moves slightly, and the lines in one band move far.
func tracking() Texture {
	return func(s *Sheet) {
		source, jitter := s.source(52), s.field(53)
		_, height := s.aspect()
		band := source.Between(0.1, 0.95) * height
		s.fill(func(_, y float64) float64 {
			line := math.Floor(y * 240)
			torn := bell((y - band) / 0.02)
			return 0.5 + 0.02*jitter.At(line*0.61, 7) + 0.05*jitter.At(line*0.07, 31) + 0.40*torn*jitter.At(line*0.9, 90)
		})
	}
}
