package frame

import "cutroom/shared/look"

// table is a look.LUT in whole numbers.
type table struct {
	nearest bool
	// points hold red, green and blue with 7 bits below the level, and one
	// value of padding.
	points []uint16
	// step is how far a point is from its neighbours in red, green and blue, in
	// values.
	step [3]int32
	// at gives, for each level, the index of the point below it, and how far
	// the level is on the way to the next point, of 1<<fractionBits.
	at, fraction [256]int32
}

const (
	levelBits    = 7
	fractionBits = 12
)

func newTable(lut *look.LUT) *table {
	side, values := lut.Points()
	t := &table{nearest: lut.Nearest, points: make([]uint16, 0, len(values)/3*4), step: [3]int32{4, 4 * int32(side), 4 * int32(side*side)}}
	for i := 0; i < len(values); i += 3 {
		for _, v := range values[i : i+3] {
			t.points = append(t.points, uint16(v*255*(1<<levelBits)+0.5))
		}
		t.points = append(t.points, 0)
	}
	top := int32(side - 1)
	for level := range t.at {
		scaled := int32(level) * top << fractionBits / 255
		if t.nearest {
			t.at[level] = (int32(level)*top*2 + 255) / 510
			continue
		}
		t.at[level] = min(scaled>>fractionBits, top-1)
		t.fraction[level] = scaled - t.at[level]<<fractionBits
	}
	return t
}

// apply changes the colours of a picture.
func (t *table) apply(r raster) {
	red, green, blue := r.planes[0], r.planes[1], r.planes[2]
	green, blue = green[:len(red)], blue[:len(red)]
	if t.nearest {
		for i := range red {
			p := t.points[t.at[red[i]]*t.step[0]+t.at[green[i]]*t.step[1]+t.at[blue[i]]*t.step[2]:][:3]
			red[i], green[i], blue[i] = rounded(int32(p[0])), rounded(int32(p[1])), rounded(int32(p[2]))
		}
		return
	}
	all := t.step[0] + t.step[1] + t.step[2]
	for i := range red {
		rl, gl, bl := red[i], green[i], blue[i]
		rf, gf, bf := t.fraction[rl], t.fraction[gl], t.fraction[bl]
		base := t.at[rl]*t.step[0] + t.at[gl]*t.step[1] + t.at[bl]*t.step[2]
		// Between the points: the tetrahedron of the cube's six that the colour
		// is in, whose corners are reached by the greatest fraction first.
		first, second := t.step[0], t.step[0]+t.step[1]
		high, middle, low := rf, gf, bf
		switch {
		case rf >= gf && gf >= bf:
		case rf >= bf && bf >= gf:
			second, middle, low = t.step[0]+t.step[2], bf, gf
		case bf >= rf && rf >= gf:
			first, second, high, middle, low = t.step[2], t.step[0]+t.step[2], bf, rf, gf
		case gf >= rf && rf >= bf:
			first, high, middle = t.step[1], gf, rf
		case gf >= bf && bf >= rf:
			first, second, high, middle, low = t.step[1], t.step[1]+t.step[2], gf, bf, rf
		default:
			first, second, high, low = t.step[2], t.step[1]+t.step[2], bf, rf
		}
		w0, w1, w2 := 1<<fractionBits-high, high-middle, middle-low
		p0, p1, p2, p3 := t.points[base:][:3], t.points[base+first:][:3], t.points[base+second:][:3], t.points[base+all:][:3]
		mix := func(c int) uint8 {
			return rounded((int32(p0[c])*w0 + int32(p1[c])*w1 + int32(p2[c])*w2 + int32(p3[c])*low) >> fractionBits)
		}
		red[i], green[i], blue[i] = mix(0), mix(1), mix(2)
	}
}

func rounded(v int32) uint8 { return uint8((v + 1<<(levelBits-1)) >> levelBits) }
