package frame

import (
	"image"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
)

// table is a look.LUT in integer arithmetic.
type table struct {
	nearest bool
	// points holds one number for each point. The number packs red, green and blue in lanes of laneBits bits with
	// levelBits fractional bits, so that one multiplication weights all three. The array is larger than needed, so
	// that a 16-bit index needs no bounds check.
	points *[1 << 16]uint64
	// step is how far the index changes from a point to its next neighbor in red, green and blue.
	step [channelMask + 1]uint32
	// places maps each level of red, green and blue to a packed number. From the highest bits to the lowest, this
	// contains the index of the point below, shifted by placeBits; the fraction of the way to the next point, in
	// units of 1/(1<<fractionBits); and the channel.
	places [3][256]uint32
}

// A lane has bits for a level, its fraction, and a weight.
const (
	levelBits    = 5
	fractionBits = 8
	laneBits     = 8 + levelBits + fractionBits
	channelBits  = 2
	channelMask  = 1<<channelBits - 1
	placeBits    = 16
	placeMask    = 1<<placeBits - 1
	// half rounds the weighted levels in all lanes.
	half = (1<<(2*laneBits) + 1<<laneBits + 1) << (levelBits + fractionBits - 1)
)

func newTable(lut *look.LUT) *table {
	side, values := lut.Points()
	t := &table{
		nearest: lut.Nearest, points: new([1 << 16]uint64),
		step: [...]uint32{1, uint32(side), uint32(side * side), 0},
	}
	for i := 0; i < len(values); i += 3 {
		point := uint64(0)
		for channel, v := range values[i : i+3] {
			point |= uint64(v*255*(1<<levelBits)+0.5) << (channel * laneBits)
		}
		t.points[i/3] = point
	}
	top := uint32(side - 1)
	for level := range uint32(256) {
		at, fraction := (level*top*2+255)/510, uint32(0)
		if !t.nearest {
			scaled := (level*top<<fractionBits + 127) / 255
			at = min(scaled>>fractionBits, top-1)
			fraction = scaled - at<<fractionBits
		}
		for channel := range t.places {
			t.places[channel][level] = at*t.step[channel]<<placeBits | fraction<<channelBits | uint32(channel)
		}
	}
	return t
}

func (t *table) apply(r raster) {
	red, green, blue := r.planes[0], r.planes[1], r.planes[2]
	green, blue = green[:len(red)], blue[:len(red)]
	reds, greens, blues, points := &t.places[0], &t.places[1], &t.places[2], t.points
	if t.nearest {
		for i := range red {
			place := reds[red[i]] + greens[green[i]] + blues[blue[i]]
			red[i], green[i], blue[i] = levels(points[place>>placeBits]<<fractionBits + half)
		}
		return
	}
	// Interpolate in one of the cube's six tetrahedrons, stepping first along the channel with the greatest fraction.
	// Each fraction has its channel in the low bits. The greatest and the least fraction thus identify their channels
	// without a branch that depends on the picture.
	step := t.step
	all := step[0] + step[1] + step[2]
	for i := range red {
		rp, gp, bp := reds[red[i]], greens[green[i]], blues[blue[i]]
		place := rp + gp + bp
		rf, gf, bf := rp&placeMask, gp&placeMask, bp&placeMask
		greatest, least := max(rf, gf, bf), min(rf, gf, bf)
		high, low := greatest>>channelBits, least>>channelBits
		middle := (place&placeMask - greatest - least) >> channelBits
		base := place >> placeBits
		p0, p1 := points[uint16(base)], points[uint16(base+step[greatest&channelMask])]
		p2, p3 := points[uint16(base+all-step[least&channelMask])], points[uint16(base+all)]
		// Intermediate results may borrow between lanes, but the final sums are correct.
		red[i], green[i], blue[i] = levels(p0<<fractionBits + half +
			(p1-p0)*uint64(high) + (p2-p1)*uint64(middle) + (p3-p2)*uint64(low))
	}
}

func levels(lanes uint64) (red, green, blue uint8) {
	const below = levelBits + fractionBits
	return uint8(lanes >> below), uint8(lanes >> (laneBits + below)), uint8(lanes >> (2*laneBits + below))
}

// tones is a table that also converts luma and chroma to RGB.
type tones struct {
	// points holds the colors for every luma and for Cr and Cb in steps of toneStep, packed as in a
	// table. Values between two steps are interpolated.
	points []uint64
}

const (
	toneBits = 3
	toneStep = 1 << toneBits
	// The last step is one above the maximum level.
	toneSide = 256/toneStep + 1
	// halfTone rounds the levels after bilinear weighting.
	halfTone = (1<<(2*laneBits) + 1<<laneBits + 1) << (levelBits + 2*toneBits - 1)
)

func newTones(lut *look.LUT) *tones {
	by := fullRange
	var r raster
	r.sized(catalog.Size{Width: 256, Height: toneSide * toneSide})
	at := 0
	for cr := int32(-128); cr <= 128; cr += toneStep {
		for cb := int32(-128); cb <= 128; cb += toneStep {
			for luma := range int32(256) {
				light := luma*by.light + 1<<15
				r.planes[0][at] = clip8((light + by.crInRed*cr) >> 16)
				r.planes[1][at] = clip8((light + by.cbInGreen*cb + by.crInGreen*cr) >> 16)
				r.planes[2][at] = clip8((light + by.cbInBlue*cb) >> 16)
				at++
			}
		}
	}
	newTable(lut).apply(r)
	t := &tones{points: make([]uint64, at)}
	for i := range t.points {
		t.points[i] = (uint64(r.planes[0][i]) | uint64(r.planes[1][i])<<laneBits |
			uint64(r.planes[2][i])<<(2*laneBits)) << levelBits
	}
	return t
}

// join fills a picture from full-range 4:2:0 data (luma, and chroma at half size).
func (t *tones) join(r raster, from *image.YCbCr) {
	width := r.size.Width
	for y := range r.size.Height {
		at := y * width
		luma := from.Y[y*from.YStride:][:width]
		cbs, crs := from.Cb[y/2*from.CStride:][:(width+1)/2], from.Cr[y/2*from.CStride:][:(width+1)/2]
		rs, gs, bs := r.planes[0][at:][:width], r.planes[1][at:][:width], r.planes[2][at:][:width]
		for i, cb := range cbs {
			cr := crs[i]
			points := t.points[(int(cr>>toneBits)*toneSide+int(cb>>toneBits))<<8:]
			here, right := (*[256]uint64)(points), (*[256]uint64)(points[256:])
			below, across := (*[256]uint64)(points[toneSide<<8:]), (*[256]uint64)(points[(toneSide+1)<<8:])
			u, v := uint64(cb%toneStep), uint64(cr%toneStep)
			uv := u * v
			wr, wb, wh := u<<toneBits-uv, v<<toneBits-uv, (toneStep-u)<<toneBits-v<<toneBits+uv
			l := luma[0]
			rs[0], gs[0], bs[0] = toned(here[l]*wh + right[l]*wr + below[l]*wb + across[l]*uv + halfTone)
			if len(luma) == 1 {
				break
			}
			l = luma[1]
			rs[1], gs[1], bs[1] = toned(here[l]*wh + right[l]*wr + below[l]*wb + across[l]*uv + halfTone)
			luma, rs, gs, bs = luma[2:], rs[2:], gs[2:], bs[2:]
		}
	}
}

// toned extracts the levels from lanes that were weighted bilinearly.
func toned(lanes uint64) (red, green, blue uint8) {
	const below = levelBits + 2*toneBits
	return uint8(lanes >> below), uint8(lanes >> (laneBits + below)), uint8(lanes >> (2*laneBits + below))
}
