package frame

import (
	"encoding/binary"
	"image"
	"math"
	"time"

	"cutroom/shared/engine/preview/look"
)

// These operations put light and textures on the picture, or move its pixels.

func (p *program) bloom(op look.Bloom) step {
	sigma := p.length(op.Radius)
	factor := 1
	for factor < 4 && sigma >= glowFrom {
		factor, sigma = 2*factor, sigma/2
	}
	part := p.part(factor)
	var bright [256]uint8
	for v := range bright {
		bright[v] = uint8(min(255, max(float64(v)-255*op.Threshold, 0)*op.Amount/(1-op.Threshold)+0.5))
	}
	return func(w *workspace, _ time.Duration) {
		small := w.shrunk(part)
		for i, plane := range small.planes {
			var any uint8
			for at, v := range plane {
				light := bright[v]
				plane[at] = light
				any |= light
			}
			if any == 0 {
				continue
			}
			w.blur.gaussian(plane, part.Width, part.Height, sigma)
			w.over(w.picture.planes[i], p.size, plane, part, screen)
		}
	}
}

// If the standard deviation of a blur exceeds this, in pixels, light is blurred at half or a quarter of the size.
const glowFrom = 3

// fringe shifts red to the left and blue to the right. Border pixels are repeated.
func fringe(w *workspace, shift int) {
	width := w.picture.size.Width
	shift = min(shift, width-1)
	for y := range w.picture.size.Height {
		red := w.picture.planes[0][y*width:][:width]
		copy(red, red[shift:])
		for x := width - shift; x < width; x++ {
			red[x] = red[width-1]
		}
		blue := w.picture.planes[2][y*width:][:width]
		copy(blue[shift:], blue)
		for x := range shift {
			blue[x] = blue[0]
		}
	}
}

// sheet is a texture drawn into planes. A gray sheet has one plane that serves for all channels.
type sheet struct {
	width, height int
	planes        [3][]uint8
}

func newSheet(drawn image.Image) sheet {
	size := drawn.Bounds().Size()
	s := sheet{width: size.X, height: size.Y}
	switch drawn := drawn.(type) {
	case *image.Gray:
		s.planes = [3][]uint8{drawn.Pix, drawn.Pix, drawn.Pix}
	case *image.RGBA:
		for channel := range s.planes {
			s.planes[channel] = make([]uint8, size.X*size.Y)
			for i := range s.planes[channel] {
				s.planes[channel][i] = drawn.Pix[4*i+channel]
			}
		}
	}
	return s
}

func (p *program) place(motion look.Motion, s sheet, at time.Duration) (x, y int) {
	seconds := at.Seconds()
	if motion.Hold > 0 {
		n := math.Floor(seconds / motion.Hold)
		margin := math.Floor(look.JumpMargin * p.length(1))
		across, down := math.Mod(n*look.JumpAcross, 1)*margin, math.Mod(n*look.JumpDown, 1)*margin
		return min(int(across), s.width-p.size.Width), min(int(down), s.height-p.size.Height)
	}
	around := func(speed float64, side int) int {
		moved := math.Mod(-speed*p.length(1)*seconds, float64(side))
		if moved < 0 {
			moved += float64(side)
		}
		return min(int(moved), side-1)
	}
	return around(motion.Right, s.width), around(motion.Down, s.height)
}

// rows calls the function `do` for each stretch of a row where the picture and the shifted sheet overlap. A row has
// one stretch, or two if the sheet wraps around in it.
func (p *program) rows(s sheet, x, y int, do func(at, from, length int)) {
	for row := range p.size.Height {
		line := (row + y) % s.height * s.width
		for column := 0; column < p.size.Width; {
			from := (column + x) % s.width
			length := min(p.size.Width-column, s.width-from)
			do(row*p.size.Width+column, line+from, length)
			column += length
		}
	}
}

func (p *program) layer(op look.Layer, seed uint32) step {
	s := newSheet(op.Draw(p.size.Width, p.size.Height, seed))
	blend := map[look.Mode]func(to, from []uint8){look.Multiply: multiply, look.Screen: screen, look.Add: add}[op.Mode]
	return func(w *workspace, at time.Duration) {
		x, y := p.place(op.Motion, s, at)
		for channel, plane := range w.picture.planes {
			from := s.planes[channel]
			p.rows(s, x, y, func(at, start, length int) { blend(plane[at:][:length], from[start:][:length]) })
		}
	}
}

func multiply(to, from []uint8) {
	from = from[:len(to)]
	for len(to) >= 8 {
		if binary.LittleEndian.Uint64(from) != allBytes {
			to, from := to[:8], from[:8]
			for i, v := range to {
				to[i] = multiplied(v, from[i])
			}
		}
		to, from = to[8:], from[8:]
	}
	for i, v := range to {
		to[i] = multiplied(v, from[i])
	}
}

func screen(to, from []uint8) {
	from = from[:len(to)]
	for len(to) >= 8 {
		if binary.LittleEndian.Uint64(from) != 0 {
			to, from := to[:8], from[:8]
			for i, v := range to {
				to[i] = 255 - multiplied(255-v, 255-from[i])
			}
		}
		to, from = to[8:], from[8:]
	}
	for i, v := range to {
		to[i] = 255 - multiplied(255-v, 255-from[i])
	}
}

const allBytes = 1<<64 - 1

// add subtracts 128 from each value in `from` and adds the result to the value in `to`, four pixels at a time. It
// clips the sums. Each sum has its own 16-bit lane.
func add(to, from []uint8) {
	from = from[:len(to)]
	for len(to) >= 8 {
		a, b := binary.LittleEndian.Uint64(to), binary.LittleEndian.Uint64(from)
		even, odd := added(a&evenBytes+b&evenBytes), added(a>>8&evenBytes+b>>8&evenBytes)
		binary.LittleEndian.PutUint64(to, even|odd<<8)
		to, from = to[8:], from[8:]
	}
	for i, v := range to {
		to[i] = clip8(int32(v) + int32(from[i]) - 128)
	}
}

// added subtracts 128 from the sums in four lanes and clips each to a byte. Because of the bias, the top bit shows
// whether a sum is at least 0, and bit 8 shows whether it exceeds 255.
func added(sums uint64) uint64 {
	sums += (1<<15 - 128) * lanesOf1
	least, most := sums>>15&lanesOf1, sums>>8&lanesOf1
	return (sums | most*255) & (least * 255)
}

// warp displaces pixels by maps whose levels are distances in pixels; see look.WarpZero. The maps are drawn at
// full size and halved if needed, because brushes would draw different strokes on a smaller map.
func (p *program) warp(op look.Warp, seed uint32, now *program) step {
	across, down := op.Draw(p.size.Width, p.size.Height, seed)
	s := newSheet(across)
	s.planes[1] = down.Pix
	if now != p {
		s = s.halved()
	}
	return now.moved(op.Motion, s)
}

func (s sheet) halved() sheet {
	half := sheet{width: max(1, s.width/2), height: max(1, s.height/2)}
	for i, levels := range s.planes[:2] {
		half.planes[i] = make([]uint8, half.width*half.height)
		newResampler(s.width, s.height, half.width, half.height).scale(half.planes[i], levels, s.width)
		for at, level := range half.planes[i] {
			half.planes[i][at] = uint8((int(level) + look.WarpZero + 1) / 2)
		}
	}
	return half
}

func (p *program) moved(motion look.Motion, s sheet) step {
	// Away from the borders, the source of a pixel is at a fixed index offset, which is the same in every plane.
	width, height := p.size.Width, p.size.Height
	moves := make([]int32, len(s.planes[0]))
	reach, drop := 0, 0
	for i, level := range s.planes[0] {
		x, y := int(level)-look.WarpZero, int(s.planes[1][i])-look.WarpZero
		moves[i] = int32(y*width + x)
		reach, drop = max(reach, x, -x), max(drop, y, -y)
	}
	return func(w *workspace, at time.Duration) {
		w.other.sized(p.size)
		x0, y0 := p.place(motion, s, at)
		to, from := w.other.planes, w.picture.planes
		clipped := func(at, start, length int) {
			row, column := at/width, at%width
			for i := range length {
				x := min(max(column+i+int(s.planes[0][start+i])-look.WarpZero, 0), width-1)
				y := min(max(row+int(s.planes[1][start+i])-look.WarpZero, 0), height-1)
				source := y*width + x
				to[0][at+i], to[1][at+i], to[2][at+i] = from[0][source], from[1][source], from[2][source]
			}
		}
		p.rows(s, x0, y0, func(at, start, length int) {
			row, column := at/width, at%width
			first := min(max(reach-column, 0), length)
			last := min(max(width-reach-column, first), length)
			if row < drop || row >= height-drop {
				first, last = length, length
			}
			clipped(at, start, first)
			reds, greens, blues := to[0][at+first:at+last], to[1][at+first:at+last], to[2][at+first:at+last]
			red, green, blue := from[0], from[1][:len(from[0])], from[2][:len(from[0])]
			greens, blues = greens[:len(reds)], blues[:len(reds)]
			for i, move := range moves[start+first:][:len(reds)] {
				source := at + first + i + int(move)
				reds[i], greens[i], blues[i] = red[source], green[source], blue[source]
			}
			clipped(at+last, start+last, length-last)
		})
		w.picture, w.other = w.other, w.picture
	}
}
