package frame

import (
	"encoding/binary"
	"math"
)

// resampler scales planes from one size to another: with a triangle over the
// pixels around each place, which widens where the picture shrinks so that
// nothing is skipped. It is made once for a pair of sizes and keeps its scratch
// memory, so it serves one goroutine at a time.
type resampler struct {
	width, height int
	fromWidth     int
	// factor is by how much both sides shrink, where that is a whole number:
	// the mean of the pixels in each place is then enough. Else it is 0.
	factor int
	// doubles is true if both sides become twice as long.
	doubles      bool
	across, down []taps
	squeezed     []uint8
	sums         []int32
}

// taps says of which pixels a pixel is the weighted mean: those from first on,
// with weights that add up to 1<<14.
type taps struct {
	first   int
	weights []int32
}

func newResampler(fromWidth, fromHeight, width, height int) *resampler {
	if factor := fromWidth / width; factor > 1 && factor*width == fromWidth && factor*height == fromHeight {
		return &resampler{width: width, height: height, fromWidth: fromWidth, factor: factor}
	}
	if width == 2*fromWidth && height == 2*fromHeight {
		return &resampler{
			width: width, height: height, fromWidth: fromWidth, doubles: true, squeezed: make([]uint8, fromWidth),
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

// scale sets a plane of the second size from one of the first.
func (s *resampler) scale(to, from []uint8, stride int) {
	if s.factor > 1 {
		s.average(to, from, stride)
		return
	}
	if s.doubles {
		s.double(to, from, stride)
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
	for y := range s.height {
		t := &s.down[y]
		out := to[y*s.width:][:s.width]
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
}

// squeeze scales a line.
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

// mix sets a line to the weighted mean of several.
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

// average makes each pixel the mean of the square of pixels in its place.
func (s *resampler) average(to, from []uint8, stride int) {
	s.sums = grown(s.sums, s.width)
	sums, factor := s.sums, s.factor
	count := int32(factor * factor)
	for y := range s.height {
		clear(sums)
		for row := range factor {
			line := from[(y*factor+row)*stride:][:s.fromWidth]
			if factor == 2 {
				for x := range sums {
					pair := line[2*x:][:2]
					sums[x] += int32(pair[0]) + int32(pair[1])
				}
				continue
			}
			for x := range sums {
				for _, v := range line[x*factor:][:factor] {
					sums[x] += int32(v)
				}
			}
		}
		for x, sum := range sums {
			to[y*s.width+x] = uint8((sum + count/2) / count)
		}
	}
}

// double makes both sides twice as long: each pixel is three quarters of the nearest one
// and a quarter of the next, each way.
func (s *resampler) double(to, from []uint8, stride int) {
	last := s.height/2 - 1
	for y := range s.height {
		near := y / 2
		next := min(max(near-1+y%2*2, 0), last)
		line := s.squeezed
		lean(line, from[near*stride:][:s.fromWidth], from[next*stride:][:s.fromWidth])
		out := to[y*s.width:][:s.width]
		left := uint32(line[0])
		out[0], out[len(out)-1] = line[0], line[len(line)-1]
		for x, v := range line[1:] {
			right := uint32(v)
			pair := out[2*x+1:][:2]
			pair[0], pair[1] = uint8((3*left+right+2)>>2), uint8((left+3*right+2)>>2)
			left = right
		}
	}
}

// lean sets a line to three quarters of one and a quarter of another, eight pixels at a
// time: the mean of the near one and of the mean of both, of which one is rounded up and
// the other down.
func lean(to, near, next []uint8) {
	const low7 = 0x7f7f7f7f7f7f7f7f
	next, to = next[:len(near)], to[:len(near)]
	at := 0
	for ; at+8 <= len(near); at += 8 {
		a, b := binary.LittleEndian.Uint64(near[at:]), binary.LittleEndian.Uint64(next[at:])
		mean := a&b + (a^b)>>1&low7
		binary.LittleEndian.PutUint64(to[at:], (a|mean)-(a^mean)>>1&low7)
	}
	for ; at < len(near); at++ {
		mean := (uint32(near[at]) + uint32(next[at])) / 2
		to[at] = uint8((uint32(near[at]) + mean + 1) / 2)
	}
}
