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

// The colours of JPEG (JFIF 1.02): BT.601 with the full range, in 16.16 fixed
// point.

// split sets a plane of luma at full size and two of chroma at half size (4:2:0)
// from the picture.
func (r raster) split(to *image.YCbCr) {
	width, height := r.size.Width, r.size.Height
	red, green, blue := r.planes[0], r.planes[1], r.planes[2]
	for y := range height {
		at := y * width
		line := to.Y[y*to.YStride:][:width]
		rs, gs, bs := red[at:][:width], green[at:][:width], blue[at:][:width]
		for x := range line {
			line[x] = uint8((19595*uint32(rs[x]) + 38470*uint32(gs[x]) + 7471*uint32(bs[x]) + 1<<15) >> 16)
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
			cb[x/2] = clip8((-11056*sr - 21712*sg + 32768*sb + 128<<18 + 1<<17) >> 18)
			cr[x/2] = clip8((32768*sr - 27440*sg - 5328*sb + 128<<18 + 1<<17) >> 18)
		}
	}
}

// join sets the picture from planes of luma and chroma of its size, all three
// full size or chroma half size.
func (r raster) join(from *image.YCbCr) {
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
			light := int32(luma[x])<<16 + 1<<15
			cb, cr := int32(cbs[x>>shift])-128, int32(crs[x>>shift])-128
			rs[x] = clip8((light + 91881*cr) >> 16)
			gs[x] = clip8((light - 22554*cb - 46802*cr) >> 16)
			bs[x] = clip8((light + 116130*cb) >> 16)
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
