package frame

import "math"

// resampler scales planes from one size to another: with a triangle over the
// pixels around each place, which widens where the picture shrinks so that
// nothing is skipped. It is made once for a pair of sizes and keeps its scratch
// memory, so it serves one goroutine at a time.
type resampler struct {
	width, height int
	fromWidth     int
	across, down  []taps
	squeezed      []uint8
	lines         [][]uint8
}

// taps says of which pixels a pixel is the weighted mean: those from first on,
// with weights that add up to 1<<14.
type taps struct {
	first   int
	weights []int32
}

func newResampler(fromWidth, fromHeight, width, height int) *resampler {
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
	height := len(s.squeezed) / s.width
	for y := range height {
		line := from[y*stride:][:s.fromWidth]
		out := s.squeezed[y*s.width:][:s.width]
		if s.width == s.fromWidth {
			copy(out, line)
			continue
		}
		for x := range out {
			t := &s.across[x]
			if len(t.weights) == 2 {
				out[x] = uint8((int32(line[t.first])*t.weights[0] + int32(line[t.first+1])*t.weights[1] + 1<<13) >> 14)
				continue
			}
			sum := int32(1 << 13)
			for i, v := range line[t.first:][:len(t.weights)] {
				sum += int32(v) * t.weights[i]
			}
			out[x] = uint8(sum >> 14)
		}
	}
	for y := range s.height {
		t := &s.down[y]
		out := to[y*s.width:][:s.width]
		lines := s.lines[:0]
		for i := range t.weights {
			lines = append(lines, s.squeezed[(t.first+i)*s.width:][:s.width])
		}
		s.lines = lines
		switch len(lines) {
		case 1:
			copy(out, lines[0])
		case 2:
			a, b := lines[0], lines[1]
			for x := range out {
				out[x] = uint8((int32(a[x])*t.weights[0] + int32(b[x])*t.weights[1] + 1<<13) >> 14)
			}
		default:
			for x := range out {
				sum := int32(1 << 13)
				for i, line := range lines {
					sum += int32(line[x]) * t.weights[i]
				}
				out[x] = uint8(sum >> 14)
			}
		}
	}
}
