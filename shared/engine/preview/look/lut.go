package look

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"

	"cutroom/shared/engine/preview/look/oklab"
)

// A table has this many points per side, so they are 8 levels apart. Renderers interpolate.
const lutSize = 33

// LUT is a color change, as a table over the sRGB cube.
type LUT struct {
	// Nearest means that a color gets the nearest point's value rather than an interpolated one.
	Nearest bool
	// values holds red, green and blue per point, with red's index varying fastest.
	values []float32
	size   int
}

// NewLUT returns the table that applies the adjustments in order.
func NewLUT(adjustments ...Adjust) *LUT {
	// All channels have the same few levels, so convert each level only once.
	var light [lutSize]float64
	for i := range light {
		light[i] = oklab.Light(float64(i) / (lutSize - 1))
	}
	of := func(level float64) float64 { return light[int(level*(lutSize-1)+0.5)] }
	return LUTOf(func(r, g, b float64) (float64, float64, float64) {
		c := oklab.FromLinear(of(r), of(g), of(b))
		for _, adjust := range adjustments {
			c = adjust(c)
		}
		return c.SRGB()
	})
}

// LUTOf returns the table for a function of red, green and blue, each 0 to 1.
func LUTOf(change func(r, g, b float64) (float64, float64, float64)) *LUT {
	lut := &LUT{size: lutSize, values: make([]float32, 0, 3*lutSize*lutSize*lutSize)}
	step := 1.0 / (lutSize - 1)
	for b := range lutSize {
		for g := range lutSize {
			for r := range lutSize {
				red, green, blue := change(float64(r)*step, float64(g)*step, float64(b)*step)
				lut.values = append(lut.values, clip(red), clip(green), clip(blue))
			}
		}
	}
	return lut
}

// Negative returns the table that inverts each channel. All calls return the same table.
var Negative = sync.OnceValue(func() *LUT {
	return LUTOf(func(r, g, b float64) (float64, float64, float64) { return 1 - r, 1 - g, 1 - b })
})

// clip limits a channel to the range 0 to 1, and replaces NaN (the root of negative light) with 0.
func clip(v float64) float32 {
	if !(v > 0) {
		return 0
	}
	return float32(min(v, 1))
}

// At looks up a color, with each channel 0 to 1. Unless Nearest is set, it interpolates between the
// eight surrounding points.
func (l *LUT) At(r, g, b float64) (float64, float64, float64) {
	top := float64(l.size - 1)
	r, g, b = float64(clip(r))*top, float64(clip(g))*top, float64(clip(b))*top
	if l.Nearest {
		v := l.point(int(r+0.5), int(g+0.5), int(b+0.5))
		return float64(v[0]), float64(v[1]), float64(v[2])
	}
	r0, g0, b0 := math.Floor(r), math.Floor(g), math.Floor(b)
	var out [3]float64
	for corner := range 8 {
		weight, at := 1.0, [3]int{int(r0), int(g0), int(b0)}
		for axis, fraction := range [3]float64{r - r0, g - g0, b - b0} {
			if corner>>axis&1 == 1 {
				weight *= fraction
				at[axis] = min(at[axis]+1, l.size-1)
			} else {
				weight *= 1 - fraction
			}
		}
		v := l.point(at[0], at[1], at[2])
		for channel := range out {
			out[channel] += weight * float64(v[channel])
		}
	}
	return out[0], out[1], out[2]
}

func (l *LUT) point(r, g, b int) []float32 { return l.values[3*((b*l.size+g)*l.size+r):][:3] }

// Then returns the table that applies first l and then the table next.
func (l *LUT) Then(next *LUT) *LUT {
	both := &LUT{size: l.size, Nearest: l.Nearest || next.Nearest, values: make([]float32, len(l.values))}
	for i := 0; i < len(l.values); i += 3 {
		r, g, b := next.At(float64(l.values[i]), float64(l.values[i+1]), float64(l.values[i+2]))
		both.values[i], both.values[i+1], both.values[i+2] = float32(r), float32(g), float32(b)
	}
	return both
}

// A table is gentle if one step of a channel changes the color by at most gentleSteps steps. One step in abruptIn may
// change it more, for example at the faces of the cube.
const (
	gentleSteps = 4.0
	abruptIn    = 200
)

// Gentle reports whether similar colors stay similar, so that no new edges appear.
func (l *LUT) Gentle() bool {
	if l.Nearest {
		return false
	}
	const most = gentleSteps / (lutSize - 1)
	places, abrupt := 0, 0
	for _, step := range []int{3, 3 * l.size, 3 * l.size * l.size} {
		for i := 0; i < len(l.values); i += 3 {
			if i/step%l.size == l.size-1 {
				continue
			}
			places++
			for c := range 3 {
				if d := l.values[i+c] - l.values[i+step+c]; d > most || d < -most {
					abrupt++
					break
				}
			}
		}
	}
	return abrupt*abruptIn <= places
}

// Points returns the table's colors and its number of points along each side of the cube. Red, green and blue are
// from 0 to 1, and red's index varies fastest. The caller must not modify the slice.
func (l *LUT) Points() (side int, values []float32) { return l.size, l.values }

// WriteM3D writes the .m3d format (Pandora) with 16-bit integers. ffmpeg reads it in a sixth of the
// time that it needs for the decimals of .cube.
func (l *LUT) WriteM3D(w io.Writer) error {
	out := bufio.NewWriter(w)
	line := fmt.Appendf(nil, "in %d\nout %d\nvalues red green blue\n", l.size*l.size*l.size, math.MaxUint16+1)
	// Blue varies fastest.
	for r := range l.size {
		for g := range l.size {
			for b := range l.size {
				for _, v := range l.point(r, g, b) {
					line = append(strconv.AppendUint(line, uint64(v*math.MaxUint16+0.5), 10), ' ')
				}
				line[len(line)-1] = '\n'
				if _, err := out.Write(line); err != nil {
					return err
				}
				line = line[:0]
			}
		}
	}
	return out.Flush()
}
