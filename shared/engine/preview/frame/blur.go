package frame

import "math"

// blurrer holds scratch sums for box blurs. It is not safe for concurrent use.
type blurrer struct {
	columns []uint32
	across  []uint8
}

// box replaces each pixel by the mean of a square. Border pixels are repeated outward.
func (b *blurrer) box(plane []uint8, width, height, radius int) {
	radius = min(radius, width-1, height-1)
	if radius < 1 {
		return
	}
	b.across = grown(b.across, width*height)
	side := uint32(2*radius + 1)
	// Multiply by the inverse instead of dividing by the side. The result is exact for these sums.
	inverse := (1<<24 + uint64(side) - 1) / uint64(side)
	mean := func(sum uint32) uint8 { return uint8((uint64(sum+side/2) * inverse) >> 24) }
	for y := range height {
		line, out := plane[y*width:][:width], b.across[y*width:][:width]
		sum := uint32(line[0]) * uint32(radius+1)
		for x := 1; x <= radius; x++ {
			sum += uint32(line[x])
		}
		first, last := uint32(line[0]), uint32(line[width-1])
		for x := range out {
			out[x] = mean(sum)
			in, gone := last, first
			if x+radius+1 < width {
				in = uint32(line[x+radius+1])
			}
			if x-radius >= 0 {
				gone = uint32(line[x-radius])
			}
			sum += in - gone
		}
	}
	b.columns = grown(b.columns, width)
	columns := b.columns
	row := func(y int) []uint8 { return b.across[min(max(y, 0), height-1)*width:][:width] }
	for x := range columns {
		columns[x] = uint32(b.across[x]) * uint32(radius+1)
	}
	for y := 1; y <= radius; y++ {
		for x, v := range row(y) {
			columns[x] += uint32(v)
		}
	}
	for y := range height {
		out, in, gone := plane[y*width:][:width], row(y+radius+1), row(y-radius)
		for x := range out {
			sum := columns[x]
			out[x] = mean(sum)
			columns[x] = sum + uint32(in[x]) - uint32(gone[x])
		}
	}
}

func (b *blurrer) gaussian(plane []uint8, width, height int, sigma float64) {
	for _, radius := range boxes(sigma) {
		b.box(plane, width, height, radius)
	}
}

// boxes returns the radii of three box blurs that together approximate a Gaussian blur with the
// standard deviation sigma.
func boxes(sigma float64) [3]int {
	ideal := math.Sqrt(4*sigma*sigma + 1)
	low := int(ideal)
	if low%2 == 0 {
		low--
	}
	low = max(low, 1)
	side := float64(low)
	small := int(math.Round((12*sigma*sigma - 3*side*side - 12*side - 9) / (-4*side - 4)))
	var radii [3]int
	for i := range radii {
		radii[i] = (low - 1) / 2
		if i >= small {
			radii[i]++
		}
	}
	return radii
}
