package frame

import "math"

// bilateral smooths a plane while keeping its edges. Its running time does not depend on the radius. It passes
// over the plane forwards and backwards, horizontally and vertically. Each pass pulls a pixel towards the
// previous pixel by a fraction that shrinks at edges (Gastal and Oliveira, "Domain Transform for Edge-Aware Image
// and Video Processing", 2011: the recursive filter). The weights of a pixel add up to one, so no division is
// needed. It keeps its scratch memory and is not safe for concurrent use.
type bilateral struct {
	// evened is the smoothed plane in fixed point, with evenedBits fractional bits.
	evened []int32
	// pull maps a level difference to a fraction of 1<<pullBits. The index is offset by 255 to avoid a branch.
	pull [512]int32
	// These are the parameters that pull was computed from.
	radius, levels float64
}

const (
	evenedBits = 8
	pullBits   = 14
)

// radius is the standard deviation of distances, in pixels. levels is the standard deviation of
// brightness, as a fraction of its range.
func (b *bilateral) smooth(plane []uint8, width, height int, radius, levels float64) {
	if b.radius != radius || b.levels != levels {
		b.radius, b.levels = radius, levels
		alpha := math.Exp(-math.Sqrt2 / radius)
		for i := range b.pull {
			b.pull[i] = int32(alpha*math.Exp(-math.Abs(float64(i-255))/(255*levels))*(1<<pullBits) + 0.5)
		}
	}
	b.evened = grown(b.evened, width*height)
	y := 0
	for ; y+1 < height; y += 2 {
		at, next := y*width, (y+1)*width
		b.across(b.evened[at:][:width], b.evened[next:][:width], plane[at:][:width], plane[next:][:width])
	}
	if y < height {
		line, out := plane[y*width:][:width], b.evened[y*width:][:width]
		b.across(out, out, line, line)
	}
	for y := 1; y < height; y++ {
		b.towards(plane, width, y, y-1)
	}
	for y := height - 1; y >= 0; y-- {
		if y < height-1 {
			b.towards(plane, width, y, y+1)
			// The row below is no longer needed for comparisons, so replace it with its result.
			rounded(plane[(y+1)*width:][:width], b.evened[(y+1)*width:][:width])
		}
	}
	rounded(plane[:width], b.evened[:width])
}

// across filters two lines at the same time, in both directions, because within a line each pixel has to wait for the
// previous one.
func (b *bilateral) across(out, out2 []int32, line, line2 []uint8) {
	out, out2, line2 = out[:len(line)], out2[:len(line)], line2[:len(line)]
	pull := &b.pull
	last, last2 := int32(line[0]), int32(line2[0])
	value, value2 := last<<evenedBits, last2<<evenedBits
	for x, v := range line {
		here, here2 := int32(v), int32(line2[x])
		share, share2 := pull[uint32(here-last+255)&511], pull[uint32(here2-last2+255)&511]
		last, last2 = here, here2
		here, here2 = here<<evenedBits, here2<<evenedBits
		value, value2 = here+(value-here)*share>>pullBits, here2+(value2-here2)*share2>>pullBits
		out[x], out2[x] = value, value2
	}
	for x := len(line) - 2; x >= 0; x-- {
		here, here2 := int32(line[x]), int32(line2[x])
		share, share2 := pull[uint32(here-last+255)&511], pull[uint32(here2-last2+255)&511]
		last, last2 = here, here2
		value, value2 = out[x]+(value-out[x])*share>>pullBits, out2[x]+(value2-out2[x])*share2>>pullBits
		out[x], out2[x] = value, value2
	}
}

func (b *bilateral) towards(plane []uint8, width, y, neighbour int) {
	row, beside := plane[y*width:][:width], plane[neighbour*width:][:width]
	out, by := b.evened[y*width:][:width], b.evened[neighbour*width:][:width]
	pull := &b.pull
	for x, v := range row {
		share := pull[uint32(int32(v)-int32(beside[x])+255)&511]
		out[x] += (by[x] - out[x]) * share >> pullBits
	}
}

func rounded(row []uint8, evened []int32) {
	evened = evened[:len(row)]
	for x := range row {
		row[x] = uint8((evened[x] + 1<<(evenedBits-1)) >> evenedBits)
	}
}
