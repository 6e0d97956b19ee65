package look

import "math"

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
		threads := s.smooth(1.0/360, func(x, y float64) float64 {
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
