package frame

import "cutroom/shared/engine/preview/look"

// table is a look.LUT in whole numbers.
type table struct {
	nearest bool
	// points are red, green and blue in one number each, in lanes of laneBits,
	// with levelBits below the level: weighing a point weighs all three.
	points []uint64
	// step is how far a point is from its neighbours in red, green and blue.
	step [channelMask + 1]int32
	// at is, for each level, the index of the point below it, and fraction
	// how far the level is on the way to the next point, of 1<<fractionBits, with
	// room for a channel below.
	at, fraction [256]int32
}

// A lane holds a level, the bits below it, and those of a weight.
const (
	levelBits    = 5
	fractionBits = 8
	laneBits     = 8 + levelBits + fractionBits
	channelBits  = 2
	channelMask  = 1<<channelBits - 1
	// half rounds the weighted levels of all lanes.
	half = (1<<(2*laneBits) + 1<<laneBits + 1) << (levelBits + fractionBits - 1)
)

func newTable(lut *look.LUT) *table {
	side, values := lut.Points()
	t := &table{
		nearest: lut.Nearest, points: make([]uint64, 0, len(values)/3),
		step: [...]int32{1, int32(side), int32(side * side), 0},
	}
	for i := 0; i < len(values); i += 3 {
		point := uint64(0)
		for channel, v := range values[i : i+3] {
			point |= uint64(v*255*(1<<levelBits)+0.5) << (channel * laneBits)
		}
		t.points = append(t.points, point)
	}
	top := int32(side - 1)
	for level := range t.at {
		scaled := (int32(level)*top<<fractionBits + 127) / 255
		if t.nearest {
			t.at[level] = (int32(level)*top*2 + 255) / 510
			continue
		}
		t.at[level] = min(scaled>>fractionBits, top-1)
		t.fraction[level] = (scaled - t.at[level]<<fractionBits) << channelBits
	}
	return t
}

// apply changes the colours of a picture.
func (t *table) apply(r raster) {
	red, green, blue := r.planes[0], r.planes[1], r.planes[2]
	green, blue = green[:len(red)], blue[:len(red)]
	if t.nearest {
		for i := range red {
			point := t.points[t.at[red[i]]*t.step[0]+t.at[green[i]]*t.step[1]+t.at[blue[i]]*t.step[2]]
			red[i], green[i], blue[i] = levels(point<<fractionBits + half)
		}
		return
	}
	// Between the points: the tetrahedron of the cube's six that the colour is
	// in, whose corners are reached by the greatest fraction first. The fractions
	// have their channel below them, so that finding the greatest and the least
	// tells their channels, and no branch depends on the picture.
	all := t.step[0] + t.step[1] + t.step[2]
	for i := range red {
		rl, gl, bl := red[i], green[i], blue[i]
		rf, gf, bf := t.fraction[rl], t.fraction[gl]|1, t.fraction[bl]|2
		base := t.at[rl]*t.step[0] + t.at[gl]*t.step[1] + t.at[bl]*t.step[2]
		greatest, least := max(rf, gf, bf), min(rf, gf, bf)
		high, middle, low := greatest>>channelBits, (rf+gf+bf-greatest-least)>>channelBits, least>>channelBits
		first, second := t.step[greatest&channelMask], all-t.step[least&channelMask]
		red[i], green[i], blue[i] = levels(t.points[base]*uint64(1<<fractionBits-high) +
			t.points[base+first]*uint64(high-middle) +
			t.points[base+second]*uint64(middle-low) + t.points[base+all]*uint64(low) + half)
	}
}

// levels takes the levels out of weighted lanes.
func levels(lanes uint64) (red, green, blue uint8) {
	const below = levelBits + fractionBits
	return uint8(lanes >> below), uint8(lanes >> (laneBits + below)), uint8(lanes >> (2*laneBits + below))
}
