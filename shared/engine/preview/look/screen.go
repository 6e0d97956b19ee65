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

// grid draws the lines of graph paper, with every fifth line stronger, for Screen layers.
func grid(amount, every float64) Texture {
	return func(s *Sheet) {
		pixel := 1 / s.Unit
		line := func(v, every, width float64) float64 {
			return smoothstep(width+pixel, width, math.Abs(math.Mod(v+every/2, every)-every/2))
		}
		s.fill(func(x, y float64) float64 {
			fine := max(line(x, every, 0), line(y, every, 0))
			strong := max(line(x, 5*every, pixel), line(y, 5*every, pixel))
			return amount * max(0.4*fine, strong)
		})
	}
}

// code draws columns of falling glyphs with bright heads, for Screen layers. It has no seam at the borders.
func code(amount float64) Texture {
	return func(s *Sheet) {
		width, height := s.aspect()
		columns, rows := max(3, int(width*34)), max(3, int(height*26))
		source := s.source(24)
		type stream struct{ head, length float64 }
		streams := make([]stream, columns)
		for i := range streams {
			streams[i] = stream{source.Float() * float64(rows), source.Between(6, 18)}
		}
		glyphs := make([]uint32, columns*rows)
		for i := range glyphs {
			// Each glyph has five rows of four dots. Many dots are set, so that glyphs look like writing.
			glyphs[i] = uint32(source.Uint64() | source.Uint64()) //nolint:staticcheck // each call draws new numbers
		}
		s.fill(func(x, y float64) float64 {
			u, v := x/width*float64(columns), y/height*float64(rows)
			column, row := min(int(u), columns-1), min(int(v), rows-1)
			behind := math.Mod(streams[column].head-float64(row)+float64(rows), float64(rows))
			light := 1 - behind/streams[column].length
			if light <= 0 {
				return 0
			}
			if behind < 1 {
				light = 1.6
			}
			i, j := int((u-float64(column))*5), int((v-float64(row))*6)
			if i > 3 || j > 4 || glyphs[row*columns+column]>>(j*4+i)&1 == 0 {
				return 0
			}
			return amount * light * 0.7
		})
	}
}
