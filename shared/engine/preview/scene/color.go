package scene

import "math"

type rgb struct{ r, g, b float64 }

func hex(v uint32) rgb {
	return rgb{float64(v>>16&0xff) / 255, float64(v>>8&0xff) / 255, float64(v&0xff) / 255}
}

func (c rgb) mix(other rgb, t float64) rgb {
	return rgb{c.r + (other.r-c.r)*t, c.g + (other.g-c.g)*t, c.b + (other.b-c.b)*t}
}

func (c rgb) times(k float64) rgb { return rgb{c.r * k, c.g * k, c.b * k} }
func (c rgb) plus(other rgb) rgb  { return rgb{c.r + other.r, c.g + other.g, c.b + other.b} }

type stop struct {
	at    float64
	color rgb
}

func gradient(stops []stop, at float64) rgb {
	if at <= stops[0].at {
		return stops[0].color
	}
	for i := 1; i < len(stops); i++ {
		if at < stops[i].at {
			return stops[i-1].color.mix(stops[i].color, smooth(stops[i-1].at, stops[i].at, at))
		}
	}
	return stops[len(stops)-1].color
}

// smooth rises smoothly with v. It is 0 where v is `low` and 1 where v is `high`.
func smooth(low, high, v float64) float64 {
	t := clamp((v - low) / (high - low))
	return t * t * (3 - 2*t)
}

func clamp(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	if v > 1 {
		return 1
	}
	return v
}

// A shape is defined by the distance from its outline: negative inside, positive outside, in picture heights.

// cover converts a distance to the fraction of a point that is covered, with a soft edge.
func cover(distance, softness float64) float64 { return smooth(softness, -softness, distance) }

// canvas adds up the colors at a point, from front to back. open is the fraction that nothing covers yet.
type canvas struct {
	color rgb
	open  float64
}

func (c *canvas) add(color rgb, cover float64) {
	c.color = c.color.plus(color.times(c.open * cover))
	c.open *= 1 - cover
}

// land returns the color with hills, nearest first, and the sky behind them.
func (c *canvas) land(hills []profile, x, y float64, color func(int) rgb, sky func() rgb) rgb {
	for i := len(hills) - 1; i >= 0 && c.open > 0; i-- {
		if a := cover(hills[i].at(x)-y, 0.0022); a > 0 {
			c.add(color(i), a)
		}
	}
	if c.open > 0 {
		c.add(sky(), 1)
	}
	return c.color
}

// capsule returns the distance from a line between a and b with round ends, whose radius is ra at a and rb at b.
func capsule(x, y, ax, ay, bx, by, ra, rb float64) float64 {
	px, py, dx, dy := x-ax, y-ay, bx-ax, by-ay
	t := clamp((px*dx + py*dy) / (dx*dx + dy*dy))
	return math.Hypot(px-dx*t, py-dy*t) - (ra + (rb-ra)*t)
}

func polygon(x, y float64, points ...float64) float64 {
	nearest, inside := math.Inf(1), false
	n := len(points) / 2
	for i, j := 0, n-1; i < n; j, i = i, i+1 {
		ax, ay, bx, by := points[2*j], points[2*j+1], points[2*i], points[2*i+1]
		nearest = min(nearest, capsule(x, y, ax, ay, bx, by, 0, 0))
		if (ay > y) != (by > y) && x < (bx-ax)*(y-ay)/(by-ay)+ax {
			inside = !inside
		}
	}
	if inside {
		return -nearest
	}
	return nearest
}
