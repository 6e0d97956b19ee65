package frame

import "math"

// bilateral evens out a plane and keeps its edges, in a time that does not
// depend on the radius: two recursive passes across and two down, whose reach
// shrinks at edges (Yang, "Recursive Bilateral Filtering", 2012). It keeps its
// scratch memory and serves one goroutine at a time.
type bilateral struct {
	rows, weights   []float32
	sums, factors   []float32
	lastRow, lastWt []float32
}

// smooth filters by a standard deviation over the picture in pixels, and one
// over levels as a share of their range.
func (b *bilateral) smooth(plane []uint8, width, height int, radius, levels float64) {
	alpha := float32(math.Exp(-math.Sqrt2 / radius))
	rest := 1 - alpha
	var reach [256]float32
	for i := range reach {
		reach[i] = alpha * float32(math.Exp(-float64(i)/(255*levels)))
	}
	b.rows, b.weights = grown(b.rows, width*height), grown(b.weights, width*height)
	for y := range height {
		line := plane[y*width:][:width]
		b.across(b.rows[y*width:][:width], b.weights[y*width:][:width], line, &reach, rest)
	}
	b.down(plane, width, height, &reach, rest)
}

// across filters one line, there and back, and returns the weight of each result.
func (b *bilateral) across(out, weights []float32, line []uint8, reach *[256]float32, rest float32) {
	sum, weight := float32(line[0]), float32(1)
	out[0], weights[0] = sum, weight
	last := int(line[0])
	for x := 1; x < len(line); x++ {
		here := int(line[x])
		a := reach[distance(here, last)]
		last = here
		sum = rest*float32(here) + a*sum
		weight = rest + a*weight
		out[x], weights[x] = sum, weight
	}
	end := len(line) - 1
	last = int(line[end])
	sum, weight = float32(last), 1
	out[end], weights[end] = 0.5*(out[end]+sum), 0.5*(weights[end]+weight)
	for x := end - 1; x >= 0; x-- {
		here := int(line[x])
		a := reach[distance(here, last)]
		last = here
		sum = rest*float32(here) + a*sum
		weight = rest + a*weight
		out[x], weights[x] = 0.5*(out[x]+sum), 0.5*(weights[x]+weight)
	}
}

// down filters columns, there and back, row by row.
func (b *bilateral) down(plane []uint8, width, height int, reach *[256]float32, rest float32) {
	b.sums, b.factors = grown(b.sums, width*height), grown(b.factors, width*height)
	copy(b.sums[:width], b.rows[:width])
	copy(b.factors[:width], b.weights[:width])
	for y := 1; y < height; y++ {
		at := y * width
		row, above := plane[at:][:width], plane[at-width:][:width]
		in, inWeights := b.rows[at:][:width], b.weights[at:][:width]
		sums, factors := b.sums[at:][:width], b.factors[at:][:width]
		sumsAbove, factorsAbove := b.sums[at-width:][:width], b.factors[at-width:][:width]
		for x := range row {
			a := reach[distance(int(row[x]), int(above[x]))]
			sums[x] = rest*in[x] + a*sumsAbove[x]
			factors[x] = rest*inWeights[x] + a*factorsAbove[x]
		}
	}
	b.lastRow, b.lastWt = grown(b.lastRow, width), grown(b.lastWt, width)
	end := (height - 1) * width
	copy(b.lastRow, b.rows[end:][:width])
	copy(b.lastWt, b.weights[end:][:width])
	// The row below is needed as it was before it is written.
	below := make([]uint8, width)
	copy(below, plane[end:][:width])
	for y := height - 1; y >= 0; y-- {
		at := y * width
		row := plane[at:][:width]
		in, inWeights := b.rows[at:][:width], b.weights[at:][:width]
		sums, factors := b.sums[at:][:width], b.factors[at:][:width]
		for x := range row {
			here := row[x]
			if y < height-1 {
				a := reach[distance(int(here), int(below[x]))]
				b.lastRow[x] = rest*in[x] + a*b.lastRow[x]
				b.lastWt[x] = rest*inWeights[x] + a*b.lastWt[x]
			}
			row[x] = uint8((sums[x]+b.lastRow[x])/(factors[x]+b.lastWt[x]) + 0.5)
			below[x] = here
		}
	}
}

func distance(a, b int) int {
	if a < b {
		return b - a
	}
	return a - b
}
