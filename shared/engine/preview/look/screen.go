package look

import "math"

// Textures of screens and printing presses.

// dots is a halftone screen for Add layers. Its values are centered on 1/2. cell is in units, angle in degrees.
func dots(amplitude, cell, angle float64) Texture {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	return func(s *Sheet) {
		source := s.source(20)
		dx, dy := source.Float()*cell, source.Float()*cell
		s.fill(func(x, y float64) float64 {
			u, v := ((x+dx)*cos+(y+dy)*sin)/cell, ((y+dy)*cos-(x+dx)*sin)/cell
			return 0.5 + amplitude*0.5*math.Cos(u*2*math.Pi)*math.Cos(v*2*math.Pi)
		})
	}
}

// bayer is an ordered dither aligned with Pixelate blocks, for Add layers. Its values are centered on 1/2.
func bayer(amplitude, block float64) Texture {
	matrix := [4][4]float64{{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}}
	return func(s *Sheet) {
		side := Pixels(block, int(s.Unit), int(s.Unit))
		s.rows(func(row int) {
			for i := range s.Width {
				threshold := (matrix[row/side%4][i/side%4] + 0.5) / 16
				s.Values[row*s.Width+i] = float32(0.5 + amplitude*(threshold-0.5))
			}
		})
	}
}

// scanlines draws the lines of a picture tube, for Multiply layers.
func scanlines(depth, every float64) Texture {
	return func(s *Sheet) {
		s.fill(func(_, y float64) float64 {
			return 1 - depth*(0.5-0.5*math.Cos(y/every*2*math.Pi))
		})
	}
}

// tape draws videotape noise: short dashes along the lines and torn bands, for Screen layers.
func tape(amount float64) Texture {
	return func(s *Sheet) {
		source := s.source(22)
		_, height := s.aspect()
		band, at := s.field(23), source.Float()*height
		s.fill(func(x, y float64) float64 {
			line := math.Floor(y * 240)
			dash := smoothstep(0.62, 0.95, band.At(x*14+line*7.7, line*3.3+0.5))
			torn := bell((y-at)/0.025) * smoothstep(0.1, 0.7, band.At(x*5+line*13.1, line*5.7))
			return amount * (0.35*dash + torn)
		})
	}
}
