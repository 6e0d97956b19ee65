package frame

import (
	"encoding/binary"
	"sync"
	"time"

	"cutroom/shared/engine/preview/look"
)

// overlay lays a gray layer directly over luma and chroma. This takes half as long as over RGB.
type overlay func(w *workspace, at time.Duration, by *colors)

// A moving layer cannot be an overlay, because chroma cannot be shifted by half a pixel.
func overlays(op look.Op) bool {
	layer, ok := op.(look.Layer)
	return ok && layer.Gray() && (layer.Mode == look.Add || layer.Motion == look.Motion{})
}

func (p *program) lastLayers(ops []look.Op, seed uint32) (all []overlay, rest []look.Op) {
	first := len(ops)
	for first > 0 && overlays(ops[first-1]) {
		first--
	}
	for _, op := range ops[first:] {
		all = append(all, p.overlay(op.(look.Layer), seed))
	}
	return all, ops[:first]
}

func (p *program) overlay(op look.Layer, seed uint32) overlay {
	s := newSheet(op.Draw(p.size.Width, p.size.Height, seed))
	if op.Mode == look.Add {
		return p.added(s, op.Motion)
	}
	// shares holds, for each pixel, how much of its distance to black (or white) remains.
	shares := s.planes[0]
	if op.Mode == look.Screen {
		for i, v := range shares {
			shares[i] = 255 - v
		}
	}
	half := chroma{}
	half.sized(p.size)
	few := chromaSize(&half.YCbCr)
	coarse := half.Cb
	newResampler(p.size.Width, p.size.Height, few.Width, few.Height).scale(coarse, shares, p.size.Width)
	return func(w *workspace, _ time.Duration, by *colors) {
		end := uint8(by.black)
		if op.Mode == look.Screen {
			end = by.white()
		}
		approach(w.colors.Y, shares, end)
		approach(w.colors.Cb, coarse, 128)
		approach(w.colors.Cr, coarse, 128)
	}
}

func (p *program) added(s sheet, motion look.Motion) overlay {
	// Video range has fewer levels.
	narrow := sync.OnceValue(func() []uint8 {
		levels := make([]uint8, len(s.planes[0]))
		for i, v := range s.planes[0] {
			levels[i] = uint8((int(v)*219 + 128*(255-219) + 127) / 255)
		}
		return levels
	})
	return func(w *workspace, at time.Duration, by *colors) {
		from := s.planes[0]
		if by != fullRange {
			from = narrow()
		}
		x, y := p.place(motion, s, at)
		p.rows(s, x, y, func(at, start, length int) { add(w.colors.Y[at:][:length], from[start:][:length]) })
	}
}

// approach moves levels towards end. shares holds the fractions of the distance that remain.
func approach(plane, shares []uint8, end uint8) {
	shares = shares[:len(plane)]
	whole := int32(end)*255 + 127
	for len(plane) >= 8 {
		if binary.LittleEndian.Uint64(shares) != allBytes {
			plane, shares := plane[:8], shares[:8]
			for i, v := range plane {
				plane[i] = by255(uint32((int32(v)-int32(end))*int32(shares[i]) + whole))
			}
		}
		plane, shares = plane[8:], shares[8:]
	}
	for i, v := range plane {
		plane[i] = by255(uint32((int32(v)-int32(end))*int32(shares[i]) + whole))
	}
}

func by255(v uint32) uint8 { return uint8((v + 1 + v>>8) >> 8) }
