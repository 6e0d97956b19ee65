package look

import (
	"math"
	"sync"

	"cutroom/shared/engine/preview/look/noise"
)

// Textures of painting surfaces and tools, for Add layers. Their values are centered on 1/2.

// paper is the tooth of rough paper, lit from the upper left.
func paper(depth float64) Texture {
	return func(s *Sheet) {
		tooth, pulp := s.field(1), s.fractal(s.field(2), 7, 3)
		const e = 0.0016
		s.fill(func(x, y float64) float64 {
			relief := tooth.Fractal(x*95, y*95, 2) - tooth.Fractal((x+e)*95, (y+e)*95, 2)
			return 0.5 + depth*(1.5*relief+0.22*pulp.at(x, y))
		})
	}
}

// canvas is a plain weave with uneven threads.
func canvas(depth float64) Texture {
	return func(s *Sheet) {
		uneven := s.field(1)
		const threads = 130
		s.fill(func(x, y float64) float64 {
			warp := math.Sin((x*threads + 0.45*uneven.At(x*9, y*40)) * math.Pi)
			weft := math.Sin((y*threads + 0.45*uneven.At(x*40+50, y*9+50)) * math.Pi)
			weave := math.Abs(warp)
			if warp*weft > 0 {
				weave = math.Abs(weft)
			}
			return 0.5 + depth*(weave-0.62+0.25*uneven.At(x*150, y*150))
		})
	}
}

// pigment draws watercolor as it settles: soft blooms with darker rims.
func pigment(depth float64) Texture {
	return func(s *Sheet) {
		wash, grains := s.fractal(s.field(3), 3.2, 4), s.field(4)
		s.fill(func(x, y float64) float64 {
			n := wash.at(x, y)
			rim := bell(n * 11)
			return 0.5 + depth*(0.9*n-0.55*rim+0.35*grains.Fractal(x*60, y*60, 2))
		})
	}
}

// hatching draws pencil strokes. A steep grade makes them thicker in darker areas.
func hatching(depth float64) Texture {
	return func(s *Sheet) {
		hand := s.field(7)
		// These are two layers of strokes in different directions.
		lines := func(angle, every, apart float64) func(x, y float64) float64 {
			sin, cos := math.Sincos(angle)
			bend := s.smooth(1.0/80, func(x, y float64) float64 { return hand.Fractal((x+apart)*5, y*5, 2) })
			pressure := s.smooth(1.0/176, func(x, y float64) float64 { return hand.At((x+apart)*22, y*22) })
			return func(x, y float64) float64 {
				across := math.Abs((x+apart)*sin+y*cos+0.006*bend.at(x, y)) / every
				stroke := math.Abs((across-math.Floor(across))*2 - 1)
				return stroke * (0.75 + 0.5*pressure.at(x, y))
			}
		}
		ones, others := lines(0.85, 0.0115, 0), lines(-0.55, 0.014, 3)
		s.fill(func(x, y float64) float64 {
			v := max(ones(x, y), 0.7*others(x, y))
			return 0.5 + depth*(v-0.6+0.5*hand.Fractal(x*170, y*170, 2))
		})
	}
}

// grain draws photographic film grain. size is a grain's size in units.
func grain(amount, size float64) Texture {
	return func(s *Sheet) {
		coarse := s.coarse(size)
		coarse.rows(func(row int) {
			source := noise.NewSource(s.Seed, 8, uint64(row))
			for i := range coarse.Width {
				coarse.Values[row*coarse.Width+i] = float32(source.Normal())
			}
		})
		s.fill(func(x, y float64) float64 { return 0.5 + amount*coarse.between(x*coarse.Unit, y*coarse.Unit) })
	}
}

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

// cells divides the picture into similar pieces around scattered points (a Voronoi diagram) that
// continue seamlessly at the borders.
type cells struct {
	perUnit float64
	purpose uint64
}

type diagram struct {
	columns, rows int
	width, height float64
	points        [][2]float64
}

func (c *cells) on(s *Sheet) diagram {
	d := diagram{}
	d.width, d.height = s.aspect()
	d.columns, d.rows = max(3, int(d.width*c.perUnit)), max(3, int(d.height*c.perUnit))
	source := s.source(60 + c.purpose)
	for range d.columns * d.rows {
		d.points = append(d.points, [2]float64{source.Float(), source.Float()})
	}
	return d
}

// nearest returns the distances from (x, y) to the nearest two points, in cells.
func (d diagram) nearest(x, y float64) (first, second float64) {
	u, v := x/d.width*float64(d.columns), y/d.height*float64(d.rows)
	cu, cv := math.Floor(u), math.Floor(v)
	first, second = 9, 9
	for j := -1; j <= 1; j++ {
		row := wrap(int(cv)+j, d.rows) * d.columns
		for i := -1; i <= 1; i++ {
			p := d.points[row+wrap(int(cu)+i, d.columns)]
			du, dv := cu+float64(i)+p[0]-u, cv+float64(j)+p[1]-v
			if distance := du*du + dv*dv; distance < first {
				first, second = distance, first
			} else if distance < second {
				second = distance
			}
		}
	}
	return math.Sqrt(first), math.Sqrt(second)
}

// caustics draws the web of light that waves cast, for Screen layers.
func (c *cells) caustics(amount float64) Texture {
	return func(s *Sheet) {
		d := c.on(s)
		// The threads are soft, and at least a twentieth of a unit wide.
		threads := s.smooth(1.0/180, func(x, y float64) float64 {
			// Bend the threads so that they still join at opposite borders.
			turnX, turnY := x/d.width*2*math.Pi, y/d.height*2*math.Pi
			u := x + 0.05*math.Sin(turnY*3+math.Sin(turnX*2))
			v := y + 0.05*math.Sin(turnX*4+math.Sin(turnY))
			first, second := d.nearest(u, v)
			thread := smoothstep(0.42, 0, second-first)
			return amount * thread * thread
		})
		s.fill(threads.at)
	}
}

// Textures of lenses, film and light.

// vignette darkens the corners, for Multiply layers. The parameter `from` is where the shade starts: 0 is the center
// and 1 a corner.
func vignette(amount, from float64) Texture {
	return func(s *Sheet) {
		width, height := s.aspect()
		s.fill(func(x, y float64) float64 {
			d := math.Hypot((x/width-0.5)*2, (y/height-0.5)*2) / math.Sqrt2
			return 1 - amount*smoothstep(from, 1.05, d)
		})
	}
}

// frame lightens the borders unevenly, like bare paper around a painting, for Screen layers. width is in units.
func frame(amount, width float64) Texture {
	return func(s *Sheet) {
		edge := s.field(30)
		w, h := s.aspect()
		s.fill(func(x, y float64) float64 {
			d := min(min(x, w-x), min(y, h-y))
			if d > width*(1+0.8+0.25) {
				return 0 // for any noise value, -1 to 1
			}
			d += width * (0.8*edge.Fractal(x*4, y*4, 4) + 0.25*edge.At(x*60, y*60))
			return amount * smoothstep(width, width*0.15, d)
		})
	}
}

// scratches draws the dust and scratches of worn film, for Screen layers.
func scratches(amount float64) Texture {
	return func(s *Sheet) {
		source := s.source(31)
		width, height := s.aspect()
		for range 5 {
			x, from := source.Float()*width, source.Float()*height
			length, lean, strength := source.Between(0.15, 0.7), source.Between(-0.01, 0.01), source.Between(0.25, 0.8)
			s.place(x, from, 0.02, length, func(dx, dy float64) float64 {
				return amount * strength * smoothstep(0.0016, 0.0004,
					math.Abs(dx-lean*math.Sin(dy*7))) * smoothstep(1, 0.6, math.Abs(dy)/length)
			})
		}
		for range 40 {
			x, y, size := source.Float()*width, source.Float()*height, source.Between(0.0015, 0.005)
			squeeze, turn, strength := source.Between(0.3, 1), source.Float()*math.Pi, source.Between(0.3, 0.9)
			sin, cos := math.Sincos(turn)
			s.place(x, y, size, size, func(dx, dy float64) float64 {
				return amount * strength * smoothstep(size, size*0.5, math.Hypot(dx*cos+dy*sin, (dy*cos-dx*sin)/squeeze))
			})
		}
	}
}

// leak draws a light leak from one side of the camera, for Screen layers.
func leak(amount float64) Texture {
	return func(s *Sheet) {
		source, haze := s.source(32), s.field(33)
		width, height := s.aspect()
		side := source.Intn(2)
		at := source.Between(0.15, 0.85) * height
		s.fill(func(x, y float64) float64 {
			d := x
			if side == 1 {
				d = width - x
			}
			d += 0.10 * haze.Fractal(x*1.5, y*1.5, 3)
			return amount * math.Exp(-d*4.2) * (0.45 + 0.55*bell((y-at)*2.2))
		})
	}
}

// brush paints in strokes that follow swirling lines.
type brush struct {
	bristle, length float64
	// swirl is the number of eddies per unit.
	swirl float64

	mu sync.Mutex
	// laid is a cache of the last strokes, because several textures of a look need them. Sheets of the same area get
	// the same strokes even if their sizes in pixels differ.
	laid strokes
}

// strokes is noise smeared along lines, with mean 0 and standard deviation 1, plus the stroke
// direction at every point. It is read-only.
type strokes struct {
	*Sheet
	directions [][2]float32
}

func (b *brush) lay(s *Sheet) strokes {
	b.mu.Lock()
	defer b.mu.Unlock()
	sheet := s.coarse(b.bristle)
	if last := b.laid.Sheet; last == nil || last.Width != sheet.Width || last.Height != sheet.Height ||
		math.Abs(last.Unit-sheet.Unit) > 1e-6*sheet.Unit || last.Seed != sheet.Seed {
		b.laid = b.draw(s, sheet)
	}
	return b.laid
}

// draw draws strokes on a coarse sheet by line integral convolution (Cabral and Leedom, 1993).
func (b *brush) draw(s, laid *Sheet) strokes {
	flow := s.field(5)
	spots := &Sheet{Width: laid.Width, Height: laid.Height, Unit: laid.Unit, Values: make([]float32, len(laid.Values))}
	directions := make([][2]float32, len(laid.Values))
	laid.rows(func(row int) {
		source := noise.NewSource(s.Seed, 6, uint64(row))
		for i := range laid.Width {
			at := row*laid.Width + i
			spots.Values[at] = float32(source.Normal())
			x, y := float64(i)/laid.Unit, float64(row)/laid.Unit
			sin, cos := math.Sincos(0.4 + 2.4*math.Pi*flow.Fractal(x*b.swirl, y*b.swirl, 2))
			directions[at] = [2]float32{float32(cos), float32(sin)}
		}
	})
	steps := max(3, int(b.length*laid.Unit/2))
	laid.rows(func(row int) {
		for i := range laid.Width {
			sum := spots.Values[row*laid.Width+i]
			// Follow the line both ways in one loop, because each step in one direction has to wait for the previous
			// one.
			x, y := float64(i)+0.5, float64(row)+0.5
			ahead, behind := [2]float64{x, y}, [2]float64{x, y}
			for range steps {
				d := directions[wrap(int(ahead[1]), laid.Height)*laid.Width+wrap(int(ahead[0]), laid.Width)]
				e := directions[wrap(int(behind[1]), laid.Height)*laid.Width+wrap(int(behind[0]), laid.Width)]
				ahead = [2]float64{ahead[0] + float64(d[0]), ahead[1] + float64(d[1])}
				behind = [2]float64{behind[0] - float64(e[0]), behind[1] - float64(e[1])}
				sum += float32(spots.between(ahead[0], ahead[1])) + float32(spots.between(behind[0], behind[1]))
			}
			// Noise that is interpolated between spots has, on average, 4/9 of the variance.
			laid.Values[row*laid.Width+i] = sum / float32(math.Sqrt(1+float64(2*steps)*4/9))
		}
	})
	return strokes{laid, directions}
}

// ridges draws the paint's relief, lit from the upper left, for Add layers. Its values are centered on 1/2.
func (b *brush) ridges(depth float64) Texture {
	return func(s *Sheet) {
		strokes := b.lay(s)
		s.fill(func(x, y float64) float64 {
			u, v := x*strokes.Unit, y*strokes.Unit
			here := strokes.between(u, v)
			return 0.5 + depth*(0.30*(here-strokes.between(u+0.8, v+0.8))+0.14*here)
		})
	}
}

// drag returns how far the strokes drag the colors, across (0) or down (1), for a Warp.
func (b *brush) drag(axis int) Texture {
	return func(s *Sheet) {
		laid := b.lay(s)
		pull := *laid.Sheet
		pull.Values = make([]float32, len(laid.Values))
		for i, d := range laid.directions {
			pull.Values[i] = 0.5 + 0.25*laid.Values[i]*d[axis]
		}
		s.fill(func(x, y float64) float64 { return pull.between(x*pull.Unit, y*pull.Unit) })
	}
}

func (b *brush) dragged(reach float64) Warp {
	return Warp{Across: b.drag(0), Down: b.drag(1), Reach: reach}
}
