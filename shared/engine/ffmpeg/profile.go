package ffmpeg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

const cubeSide = 33

// primaries is a row-major matrix from linear RGB to XYZ under illuminant D50.
type primaries [3][3]float64

var fromXYZ = primaries{
	{3.1338561, -1.6168667, -0.4906146}, {-0.9787684, 1.9161415, 0.0334540}, {0.0719453, -0.2289914, 1.4052427},
}

func (p primaries) apply(v [3]float64) (out [3]float64) {
	for i, row := range p {
		out[i] = row[0]*v[0] + row[1]*v[1] + row[2]*v[2]
	}
	return out
}

// toSRGB returns a table in Adobe's cube format that converts an ICC profile's colors to sRGB. It returns nil if the
// profile is practically sRGB, or does not consist of primaries and curves.
func toSRGB(profile []byte) []byte {
	from, curves, ok := readProfile(profile)
	if !ok {
		return nil
	}
	var cube bytes.Buffer
	fmt.Fprintf(&cube, "LUT_3D_SIZE %d\n", cubeSide)
	largest := 0.0
	for i := range cubeSide * cubeSide * cubeSide {
		device := [3]float64{float64(i % cubeSide), float64(i / cubeSide % cubeSide), float64(i / cubeSide / cubeSide)}
		var linear [3]float64
		for c := range device {
			device[c] /= cubeSide - 1
			linear[c] = curves[c](device[c])
		}
		out := fromXYZ.apply(from.apply(linear))
		for c, v := range out {
			out[c] = encodeSRGB(v)
			largest = max(largest, math.Abs(out[c]-device[c]))
		}
		fmt.Fprintf(&cube, "%.5f %.5f %.5f\n", out[0], out[1], out[2])
	}
	if !(largest > 0.02) {
		return nil
	}
	return cube.Bytes()
}

// encodeSRGB applies the sRGB transfer function (IEC 61966-2-1).
func encodeSRGB(v float64) float64 {
	switch v = min(max(v, 0), 1); {
	case v <= 0.0031308:
		return 12.92 * v
	default:
		return 1.055*math.Pow(v, 1/2.4) - 0.055
	}
}

// readProfile reads the primaries and curves of an RGB profile (ICC.1:2022, 8.3.3).
func readProfile(profile []byte) (matrix primaries, curves [3]func(float64) float64, ok bool) {
	const header = 132
	if len(profile) < header || string(profile[16:24]) != "RGB XYZ " {
		return matrix, curves, false
	}
	big := binary.BigEndian
	tag := func(name string) []byte {
		for i := range min(int(big.Uint32(profile[128:])), 100) {
			at := header + 12*i
			if at+12 > len(profile) {
				return nil
			}
			if entry := profile[at:]; string(entry[:4]) == name {
				start, size := uint64(big.Uint32(entry[4:])), uint64(big.Uint32(entry[8:]))
				if start+size > uint64(len(profile)) {
					return nil
				}
				return profile[start:][:size]
			}
		}
		return nil
	}
	if tag("A2B0") != nil {
		return matrix, curves, false // a lookup table
	}
	for c, colour := range []string{"r", "g", "b"} {
		xyz := tag(colour + "XYZ")
		if len(xyz) < 20 {
			return matrix, curves, false
		}
		for i := range 3 {
			matrix[i][c] = fixed(xyz[8+4*i:])
		}
		if curves[c] = readCurve(tag(colour + "TRC")); curves[c] == nil {
			return matrix, curves, false
		}
	}
	return matrix, curves, true
}

func fixed(b []byte) float64 { return float64(int32(binary.BigEndian.Uint32(b))) / (1 << 16) }

// readCurve reads a transfer curve to linear light (ICC.1:2022, 10.6 and 10.18), or returns nil.
func readCurve(tag []byte) func(float64) float64 {
	if len(tag) < 12 {
		return nil
	}
	switch string(tag[:4]) {
	case "curv":
		count := int(binary.BigEndian.Uint32(tag[8:]))
		table := tag[12:]
		if count > len(table)/2 {
			return nil
		}
		at := func(i int) float64 { return float64(binary.BigEndian.Uint16(table[2*i:])) }
		switch count {
		case 0:
			return func(v float64) float64 { return v }
		case 1:
			return func(v float64) float64 { return math.Pow(v, at(0)/256) }
		}
		return func(v float64) float64 {
			place := v * float64(count-1)
			i := min(int(place), count-2)
			return (at(i) + (at(i+1)-at(i))*(place-float64(i))) / 65535
		}
	case "para":
		kind := binary.BigEndian.Uint16(tag[8:])
		counts := []int{1, 3, 4, 5, 7}
		if int(kind) >= len(counts) || len(tag) < 12+4*counts[kind] {
			return nil
		}
		var p [7]float64 // in the order g a b c d e f
		p[1] = 1
		for i := range counts[kind] {
			p[i] = fixed(tag[12+4*i:])
		}
		g, a, b, c, d, e, f := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
		switch kind {
		case 1, 2:
			// Below -b/a the curve is constant.
			c, d, e, f = 0, -b/a, c, c
		}
		return func(v float64) float64 {
			if v >= d {
				return math.Pow(max(a*v+b, 0), g) + e
			}
			return c*v + f
		}
	}
	return nil
}
