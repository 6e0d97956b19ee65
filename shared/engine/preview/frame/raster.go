package frame

import (
	"image"

	"cutroom/shared/domain/catalog"
)

// raster is a picture in planes of red, green and blue, with one byte per pixel each.
type raster struct {
	size   catalog.Size
	planes [3][]uint8
}

func (r *raster) sized(size catalog.Size) {
	r.size = size
	for i := range r.planes {
		r.planes[i] = grown(r.planes[i], size.Width*size.Height)
	}
}

// grown returns a slice of the given length. Its contents are undefined.
func grown[T any](have []T, length int) []T {
	if cap(have) < length {
		return make([]T, length)
	}
	return have[:length]
}

// colors converts red, green and blue to luma and chroma (BT.601) and back, in 16.16 fixed point.
type colors struct {
	black int32
	// luma holds the weights of red, green and blue in luma.
	luma [3]uint32
	// cb and cr hold the weights of red, green and blue in chroma. The other fields are for the conversion back:
	// light is luma's weight in every channel, and the rest are the weights of Cr in red, of Cb and Cr in green, and
	// of Cb in blue.
	cb, cr                                         [3]int32
	light, crInRed, cbInGreen, crInGreen, cbInBlue int32
}

// fullRange describes JPEG's colors (JFIF 1.02). narrowRange describes video's colors.
var (
	fullRange = &colors{
		luma: [3]uint32{19595, 38470, 7471}, cb: [3]int32{-11056, -21712, 32768}, cr: [3]int32{32768, -27440, -5328},
		light: 1 << 16, crInRed: 91881, cbInGreen: -22554, crInGreen: -46802, cbInBlue: 116130,
	}
	narrowRange = &colors{
		black: 16,
		luma:  [3]uint32{16829, 33039, 6416}, cb: [3]int32{-9714, -19070, 28784}, cr: [3]int32{28784, -24103, -4681},
		light: 76309, crInRed: 104597, cbInGreen: -25675, crInGreen: -53279, cbInBlue: 132201,
	}
)

func (c *colors) widen(planes *chroma) {
	if c == fullRange {
		return
	}
	var luma, color [256]uint8
	for v := range luma {
		luma[v] = clip8(((int32(v)-c.black)*c.light + 1<<15) >> 16)
		color[v] = clip8((int32(v)-128)*255/224 + 128)
	}
	planes.planes(func(plane []uint8, _, _ int, chroma bool) {
		table := &luma
		if chroma {
			table = &color
		}
		for i, v := range plane {
			plane[i] = table[v]
		}
	})
}

// split converts to full-size luma and half-size chroma (4:2:0).
func (r raster) split(to *image.YCbCr, by *colors) {
	kr, kg, kb, black := by.luma[0], by.luma[1], by.luma[2], uint32(by.black)<<16+1<<15
	width, height := r.size.Width, r.size.Height
	red, green, blue := r.planes[0], r.planes[1], r.planes[2]
	for y := range height {
		at := y * width
		line := to.Y[y*to.YStride:][:width]
		rs, gs, bs := red[at:][:len(line)], green[at:][:len(line)], blue[at:][:len(line)]
		for x := range line {
			line[x] = uint8((kr*uint32(rs[x]) + kg*uint32(gs[x]) + kb*uint32(bs[x]) + black) >> 16)
		}
		if y%2 == 0 {
			continue
		}
		r.splitChroma(to, by, y-1, y)
	}
	if height%2 == 1 {
		r.splitChroma(to, by, height-1, height-1)
	}
}

func (r raster) splitChroma(to *image.YCbCr, by *colors, y, next int) {
	cbr, cbg, cbb, crr, crg, crb := by.cb[0], by.cb[1], by.cb[2], by.cr[0], by.cr[1], by.cr[2]
	width := r.size.Width
	half := (width + 1) / 2
	cb, cr := to.Cb[y/2*to.CStride:][:half], to.Cr[y/2*to.CStride:][:half]
	set := func(x int, sr, sg, sb int32) {
		cb[x] = clip8((cbr*sr + cbg*sg + cbb*sb + 128<<18 + 1<<17) >> 18)
		cr[x] = clip8((crr*sr + crg*sg + crb*sb + 128<<18 + 1<<17) >> 18)
	}
	var tops, bottoms [3][]uint8
	for i, plane := range r.planes {
		tops[i], bottoms[i] = plane[y*width:][:width], plane[next*width:][:width]
	}
	x := 0
	for ; 2*x+8 <= width; x += 4 {
		// These are the sums of four 2x2 squares, one per lane.
		sr, sg, sb := squares(tops[0][2*x:], bottoms[0][2*x:]), squares(tops[1][2*x:], bottoms[1][2*x:]),
			squares(tops[2][2*x:], bottoms[2][2*x:])
		cb, cr := cb[x:][:4], cr[x:][:4]
		for i := range cb {
			r, g, b := int32(uint16(sr)), int32(uint16(sg)), int32(uint16(sb))
			sr, sg, sb = sr>>16, sg>>16, sb>>16
			cb[i] = clip8((cbr*r + cbg*g + cbb*b + 128<<18 + 1<<17) >> 18)
			cr[i] = clip8((crr*r + crg*g + crb*b + 128<<18 + 1<<17) >> 18)
		}
	}
	for ; x < half; x++ {
		first, second := 2*x, min(2*x+1, width-1)
		sum := func(i int) int32 {
			return int32(tops[i][first]) + int32(tops[i][second]) + int32(bottoms[i][first]) + int32(bottoms[i][second])
		}
		set(x, sum(0), sum(1), sum(2))
	}
}

func (r raster) join(from *image.YCbCr, by *colors) {
	gain, black := by.light, by.black
	crInRed, cbInGreen, crInGreen, cbInBlue := by.crInRed, by.cbInGreen, by.crInGreen, by.cbInBlue
	width, height := r.size.Width, r.size.Height
	for y := range height {
		at := y * width
		luma := from.Y[y*from.YStride:][:width]
		cbs, crs := from.Cb[y/2*from.CStride:][:(width+1)/2], from.Cr[y/2*from.CStride:][:(width+1)/2]
		rs, gs, bs := r.planes[0][at:][:width], r.planes[1][at:][:width], r.planes[2][at:][:width]
		for i, v := range cbs {
			cb, cr := int32(v)-128, int32(crs[i])-128
			red, green, blue := crInRed*cr+1<<15, cbInGreen*cb+crInGreen*cr+1<<15, cbInBlue*cb+1<<15
			if len(luma) == 1 {
				light := (int32(luma[0]) - black) * gain
				rs[0], gs[0], bs[0] = clip8((light+red)>>16), clip8((light+green)>>16), clip8((light+blue)>>16)
				break
			}
			light, next := (int32(luma[0])-black)*gain, (int32(luma[1])-black)*gain
			rs[0], gs[0], bs[0] = clip8((light+red)>>16), clip8((light+green)>>16), clip8((light+blue)>>16)
			rs[1], gs[1], bs[1] = clip8((next+red)>>16), clip8((next+green)>>16), clip8((next+blue)>>16)
			luma, rs, gs, bs = luma[2:], rs[2:], gs[2:], bs[2:]
		}
	}
}

func clip8(v int32) uint8 {
	if uint32(v) > 255 {
		if v < 0 {
			return 0
		}
		return 255
	}
	return uint8(v)
}

func (r raster) gray(to []uint8) {
	red, green, blue := r.planes[0], r.planes[1], r.planes[2]
	red, green, blue = red[:len(to)], green[:len(to)], blue[:len(to)]
	for i := range to {
		to[i] = uint8((19595*uint32(red[i]) + 38470*uint32(green[i]) + 7471*uint32(blue[i]) + 1<<15) >> 16)
	}
}
