package frame

import (
	"image"

	"cutroom/shared/domain/catalog"
)

// raster is a picture in planes of red, green and blue, each a byte a pixel.
type raster struct {
	size   catalog.Size
	planes [3][]uint8
}

func newRaster(size catalog.Size) raster {
	r := raster{size: size}
	for i := range r.planes {
		r.planes[i] = make([]uint8, size.Width*size.Height)
	}
	return r
}

// sized resizes the raster, and reuses its memory if that is enough.
func (r *raster) sized(size catalog.Size) {
	r.size = size
	for i := range r.planes {
		r.planes[i] = grown(r.planes[i], size.Width*size.Height)
	}
}

// grown returns a slice of the length, with arbitrary values.
func grown[T any](have []T, length int) []T {
	if cap(have) < length {
		return make([]T, length)
	}
	return have[:length]
}

func (r raster) copyFrom(from raster) {
	for i := range r.planes {
		copy(r.planes[i], from.planes[i])
	}
}

// colors are how red, green and blue become luma and chroma (BT.601) and back, in
// 16.16 fixed point.
type colors struct {
	// black is the luma of black.
	black int32
	// luma are the weights of red, green and blue in it.
	luma [3]uint32
	// cb and cr are their weights in chroma, light is that of luma in each of them,
	// and the rest those of chroma: of Cr in red, of Cb and Cr in green, of Cb in blue.
	cb, cr                                         [3]int32
	light, crInRed, cbInGreen, crInGreen, cbInBlue int32
}

// fullRange are the colours of JPEG (JFIF 1.02), narrowRange those of video.
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

// split sets a plane of luma at full size and two of chroma at half size (4:2:0)
// from the picture.
func (r raster) split(to *image.YCbCr, by *colors) {
	kr, kg, kb, black := by.luma[0], by.luma[1], by.luma[2], uint32(by.black)<<16+1<<15
	cbr, cbg, cbb, crr, crg, crb := by.cb[0], by.cb[1], by.cb[2], by.cr[0], by.cr[1], by.cr[2]
	width, height := r.size.Width, r.size.Height
	red, green, blue := r.planes[0], r.planes[1], r.planes[2]
	for y := range height {
		at := y * width
		line := to.Y[y*to.YStride:][:width]
		rs, gs, bs := red[at:][:width], green[at:][:width], blue[at:][:width]
		for x := range line {
			line[x] = uint8((kr*uint32(rs[x]) + kg*uint32(gs[x]) + kb*uint32(bs[x]) + black) >> 16)
		}
	}
	for y := 0; y < height; y += 2 {
		top, bottom := y*width, min(y+1, height-1)*width
		cb, cr := to.Cb[y/2*to.CStride:], to.Cr[y/2*to.CStride:]
		for x := 0; x < width; x += 2 {
			next := min(x+1, width-1)
			sum := func(plane []uint8) int32 {
				return int32(plane[top+x]) + int32(plane[top+next]) + int32(plane[bottom+x]) + int32(plane[bottom+next])
			}
			sr, sg, sb := sum(red), sum(green), sum(blue)
			cb[x/2] = clip8((cbr*sr + cbg*sg + cbb*sb + 128<<18 + 1<<17) >> 18)
			cr[x/2] = clip8((crr*sr + crg*sg + crb*sb + 128<<18 + 1<<17) >> 18)
		}
	}
}

// join sets the picture from planes of luma and chroma of its size, all three
// full size or chroma half size.
func (r raster) join(from *image.YCbCr, by *colors) {
	gain, black := by.light, by.black
	crInRed, cbInGreen, crInGreen, cbInBlue := by.crInRed, by.cbInGreen, by.crInGreen, by.cbInBlue
	width, height := r.size.Width, r.size.Height
	shift := 0
	if from.SubsampleRatio == image.YCbCrSubsampleRatio420 {
		shift = 1
	}
	for y := range height {
		at := y * width
		luma := from.Y[y*from.YStride:][:width]
		cbs, crs := from.Cb[y>>shift*from.CStride:], from.Cr[y>>shift*from.CStride:]
		rs, gs, bs := r.planes[0][at:][:width], r.planes[1][at:][:width], r.planes[2][at:][:width]
		for x := range luma {
			light := (int32(luma[x])-black)*gain + 1<<15
			cb, cr := int32(cbs[x>>shift])-128, int32(crs[x>>shift])-128
			rs[x] = clip8((light + crInRed*cr) >> 16)
			gs[x] = clip8((light + cbInGreen*cb + crInGreen*cr) >> 16)
			bs[x] = clip8((light + cbInBlue*cb) >> 16)
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

// gray sets a plane to the picture's luma.
func (r raster) gray(to []uint8) {
	red, green, blue := r.planes[0], r.planes[1], r.planes[2]
	for i := range to {
		to[i] = uint8((19595*uint32(red[i]) + 38470*uint32(green[i]) + 7471*uint32(blue[i]) + 1<<15) >> 16)
	}
}
