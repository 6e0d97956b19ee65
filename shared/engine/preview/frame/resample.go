package frame

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// resampler scales planes between two sizes with a triangle filter that skips no pixels. It keeps
// its scratch memory, so it is not safe for concurrent use.
type resampler struct {
	width, height, fromWidth int
	// factor is the factor by which both sides shrink, or 0 if that is not an integer.
	factor int
	// grows is the factor by which both sides grow if that is 2 or 4. Otherwise it is 0.
	grows        int
	across, down []taps
	squeezed     []uint8
	sums         []int32
}

// taps defines an output pixel as a weighted mean of input pixels. The field `first` is the index of the first input
// pixel. The weights add up to 1<<14.
type taps struct {
	first   int
	weights []int32
}

func newResampler(fromWidth, fromHeight, width, height int) *resampler {
	if factor := fromWidth / width; factor > 0 && factor*width == fromWidth && factor*height == fromHeight {
		return &resampler{width: width, height: height, fromWidth: fromWidth, factor: factor}
	}
	for grows := 2; grows <= 4; grows *= 2 {
		if width == grows*fromWidth && height == grows*fromHeight {
			return &resampler{
				width: width, height: height, fromWidth: fromWidth, grows: grows,
				squeezed: make([]uint8, fromWidth),
			}
		}
	}
	return &resampler{
		width: width, height: height, fromWidth: fromWidth,
		across: tapsOf(fromWidth, width), down: tapsOf(fromHeight, height),
		squeezed: make([]uint8, width*fromHeight),
	}
}

func tapsOf(from, to int) []taps {
	all := make([]taps, to)
	scale := float64(from) / float64(to)
	reach := max(scale, 1)
	for i := range all {
		center := (float64(i)+0.5)*scale - 0.5
		first, last := int(math.Floor(center-reach))+1, int(math.Ceil(center+reach))-1
		weights := map[int]float64{}
		total := 0.0
		for at := first; at <= last; at++ {
			weight := 1 - math.Abs(float64(at)-center)/reach
			weights[min(max(at, 0), from-1)] += weight
			total += weight
		}
		first, last = min(max(first, 0), from-1), min(max(last, 0), from-1)
		t := taps{first: first}
		left := int32(1 << 14)
		for at := first; at <= last; at++ {
			weight := int32(math.Round(weights[at] / total * (1 << 14)))
			if at == last {
				weight = left
			}
			left -= weight
			t.weights = append(t.weights, weight)
		}
		all[i] = t
	}
	return all
}

func (s *resampler) scale(to, from []uint8, stride int) {
	if s.factor > 1 {
		s.average(to, from, stride)
		return
	}
	if s.factor == 1 {
		for y := range s.height {
			copy(to[y*s.width:][:s.width], from[y*stride:])
		}
		return
	}
	s.begin(from, stride)
	for y := range s.height {
		s.line(to[y*s.width:][:s.width], from, stride, y)
	}
}

func (s *resampler) begin(from []uint8, stride int) {
	if s.grows > 0 {
		return
	}
	height := len(s.squeezed) / s.width
	for y := range height {
		line := from[y*stride:][:s.fromWidth]
		out := s.squeezed[y*s.width:][:s.width]
		if s.width == s.fromWidth {
			copy(out, line)
			continue
		}
		s.squeeze(out, line)
	}
}

// line computes one line of the result, for callers that do not need the entire plane.
func (s *resampler) line(out, from []uint8, stride, y int) {
	if s.grows > 0 {
		s.grow(out, from, stride, y)
		return
	}
	t := &s.down[y]
	above := s.squeezed[t.first*s.width:][:len(out)]
	switch len(t.weights) {
	case 1:
		copy(out, above)
	case 2:
		below := s.squeezed[(t.first+1)*s.width:][:len(out)]
		w0, w1 := t.weights[0], t.weights[1]
		for x := range out {
			out[x] = uint8((int32(above[x])*w0 + int32(below[x])*w1 + 1<<13) >> 14)
		}
	default:
		s.mix(out, t)
	}
}

func (s *resampler) squeeze(out, line []uint8) {
	for x := range out {
		t := &s.across[x]
		if len(t.weights) == 2 {
			pair := line[t.first:][:2]
			out[x] = uint8((int32(pair[0])*t.weights[0] + int32(pair[1])*t.weights[1] + 1<<13) >> 14)
			continue
		}
		sum := int32(1 << 13)
		for i, v := range line[t.first:][:len(t.weights)] {
			sum += int32(v) * t.weights[i]
		}
		out[x] = uint8(sum >> 14)
	}
}

func (s *resampler) mix(out []uint8, t *taps) {
	s.sums = grown(s.sums, len(out))
	sums := s.sums
	for x := range sums {
		sums[x] = 1 << 13
	}
	for i, weight := range t.weights {
		for x, v := range s.squeezed[(t.first+i)*s.width:][:len(sums)] {
			sums[x] += int32(v) * weight
		}
	}
	for x := range out {
		out[x] = uint8(sums[x] >> 14)
	}
}

// A word contains several pixels. The bytes at even positions are widened to 16-bit lanes, which have enough bits for
// sums.
const (
	evenBytes = 0x00ff00ff00ff00ff
	lanesOf1  = 0x0001000100010001
	evenPairs = 0x0000ffff0000ffff
)

// average sets each pixel to the mean of the square of pixels that it covers.
func (s *resampler) average(to, from []uint8, stride int) {
	s.sums = grown(s.sums, s.width)
	sums, factor := s.sums, s.factor
	count := int32(factor * factor)
	for y := range s.height {
		out, done := to[y*s.width:][:s.width], 0
		switch factor {
		case 2:
			done = halved(out, from[2*y*stride:][:s.fromWidth], from[(2*y+1)*stride:][:s.fromWidth])
		case 4:
			done = quartered(out, from[4*y*stride:], stride)
		}
		if done == s.width {
			continue
		}
		clear(sums)
		for row := range factor {
			line := from[(y*factor+row)*stride:][:s.fromWidth]
			for x := done; x < s.width; x++ {
				for _, v := range line[x*factor:][:factor] {
					sums[x] += int32(v)
				}
			}
		}
		for x := done; x < s.width; x++ {
			out[x] = uint8((sums[x] + count/2) / count)
		}
	}
}

// halved computes the means of 2x2 squares, four squares at a time. It returns the number of pixels that it has set.
func halved(out, top, bottom []uint8) int {
	x := 0
	for ; x+4 <= len(out); x += 4 {
		sums := squares(top[2*x:], bottom[2*x:]) + 2*lanesOf1
		binary.LittleEndian.PutUint32(out[x:], packed(sums>>2&evenBytes))
	}
	return x
}

// quartered computes the means of 4x4 squares, four squares at a time. It returns the number of pixels that it has set.
func quartered(out, from []uint8, stride int) int {
	width := 4 * len(out)
	first, second := from[:width], from[stride:][:width]
	third, fourth := from[2*stride:][:width], from[3*stride:][:width]
	x := 0
	for ; x+4 <= len(out); x += 4 {
		a, b, c, d := first[4*x:][:16], second[4*x:][:16], third[4*x:][:16], fourth[4*x:][:16]
		// Each word first holds the sums of four 2x4 blocks, then of two 4x4 blocks.
		sums := squares(a, b) + squares(c, d)
		others := squares(a[8:], b[8:]) + squares(c[8:], d[8:])
		sums, others = sums&evenPairs+sums>>16&evenPairs, others&evenPairs+others>>16&evenPairs
		sums, others = sums+8<<32+8, others+8<<32+8
		out := out[x:][:4]
		out[0], out[1] = uint8(sums>>4), uint8(sums>>36)
		out[2], out[3] = uint8(others>>4), uint8(others>>36)
	}
	return x
}

// squares returns the sums of four 2x2 squares of pixels.
func squares(top, bottom []uint8) uint64 {
	a, b := binary.LittleEndian.Uint64(top), binary.LittleEndian.Uint64(bottom)
	return a&evenBytes + a>>8&evenBytes + b&evenBytes + b>>8&evenBytes
}

func packed(lanes uint64) uint32 {
	lanes = (lanes | lanes>>8) & evenPairs
	return uint32(lanes | lanes>>16)
}

// grow computes one line of an enlarged plane. It interpolates horizontally and vertically.
func (s *resampler) grow(out, from []uint8, stride, y int) {
	grows := s.grows
	near, phase := y/grows, y%grows
	next, weight := near+1, 3*grows-2*phase-1
	if phase < grows/2 {
		next, weight = near-1, 2*phase+1+grows
	}
	next = min(max(next, 0), s.height/grows-1)
	line := s.squeezed
	mingle(line, from[near*stride:][:s.fromWidth], from[next*stride:][:s.fromWidth], weight, 2*grows)
	first, last := line[0], line[len(line)-1]
	for x := range grows / 2 {
		out[x], out[len(out)-1-x] = first, last
	}
	between := out[grows/2:]
	if grows == 2 {
		doubled(between, line)
	} else {
		quadrupled(between, line)
	}
}

// doubled interpolates two pixels between each pair of neighbors in a line, at 1/4 and 3/4 of the way.
func doubled(out, line []uint8) {
	x := 0
	for ; x+9 <= len(line); x += 8 {
		a, b := binary.LittleEndian.Uint64(line[x:]), binary.LittleEndian.Uint64(line[x+1:])
		left, right := leaned(a, b), leaned(b, a)
		to := out[2*x:][:16]
		binary.LittleEndian.PutUint64(to, spread(left)|spread(right)<<8)
		binary.LittleEndian.PutUint64(to[8:], spread(left>>32)|spread(right>>32)<<8)
	}
	for ; x+1 < len(line); x++ {
		left, right := uint32(line[x]), uint32(line[x+1])
		out[2*x], out[2*x+1] = uint8((3*left+right+2)>>2), uint8((left+3*right+2)>>2)
	}
}

func spread(bytes uint64) uint64 {
	bytes = (bytes&0xffffffff | bytes<<16) & evenPairs
	return (bytes | bytes<<8) & evenBytes
}

// quadrupled interpolates four pixels between each pair of neighbors in a line, at 1/8, 3/8, 5/8 and 7/8 of the way.
func quadrupled(out, line []uint8) {
	left := uint64(line[0])
	for x, v := range line[1:] {
		right := uint64(v)
		lanes := (left*0x0001000300050007 + right*0x0007000500030001 + 4*lanesOf1) >> 3 & evenBytes
		binary.LittleEndian.PutUint32(out[4*x:], packed(lanes))
		left = right
	}
}

func mingle(to, near, next []uint8, weight, of int) {
	next, to = next[:len(near)], to[:len(near)]
	w, rest, shift := uint64(weight), uint64(of-weight), bits.Len(uint(of))-1
	round := uint64(of/2) * lanesOf1
	at := 0
	for ; at+8 <= len(near); at += 8 {
		a, b := binary.LittleEndian.Uint64(near[at:]), binary.LittleEndian.Uint64(next[at:])
		even := (a&evenBytes*w + b&evenBytes*rest + round) >> shift & evenBytes
		odd := (a>>8&evenBytes*w + b>>8&evenBytes*rest + round) >> shift & evenBytes
		binary.LittleEndian.PutUint64(to[at:], even|odd<<8)
	}
	for ; at < len(near); at++ {
		to[at] = uint8((int(near[at])*weight + int(next[at])*(of-weight) + of/2) / of)
	}
}

// leaned computes, for each byte, three quarters of near plus a quarter of next. It averages twice. One average is
// rounded up and the other down.
func leaned(near, next uint64) uint64 {
	const low7 = 0x7f7f7f7f7f7f7f7f
	mean := near&next + (near^next)>>1&low7
	return (near | mean) - (near^mean)>>1&low7
}
