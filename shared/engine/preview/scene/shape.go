package scene

import "math"

// A shape is defined by the distance from its outline: negative inside, positive outside, in picture heights.

// cover converts a distance to the fraction of a point that is covered, with a soft edge.
func cover(distance, softness float64) float64 { return smooth(softness, -softness, distance) }

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
