// Package noise produces numbers that look random but are deterministic: every value is a function
// of a seed and a position. The same seed produces the same picture on every run.
package noise

import "math"

// Mix scrambles a number so that neighboring inputs give unrelated results. It is the finalizer of
// SplitMix64 (Steele, Lea and Flood, 2014).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Source is a sequence of pseudorandom numbers. Its zero value is the sequence of seed 0.
type Source struct{ state uint64 }

// NewSource combines the parts of a seed, usually a picture's seed and a number for the purpose. Their order matters.
func NewSource(seed ...uint64) *Source {
	s := &Source{}
	for _, part := range seed {
		s.state = Mix(s.state ^ Mix(part))
	}
	return s
}

func (s *Source) Uint64() uint64 {
	s.state += 0x9e3779b97f4a7c15
	return Mix(s.state)
}

// Float returns a number from 0 to below 1.
func (s *Source) Float() float64                    { return float64(s.Uint64()>>11) / (1 << 53) }
func (s *Source) Between(low, high float64) float64 { return low + (high-low)*s.Float() }
func (s *Source) Intn(n int) int                    { return int(s.Uint64() % uint64(n)) }

// Normal draws from a bell curve around 0 with standard deviation 1. It sums twelve uniform draws,
// which is cheap and avoids rare extremes that would show up as specks.
func (s *Source) Normal() float64 {
	a, b, c := s.Uint64(), s.Uint64(), s.Uint64()
	sum := 0.0
	for range 4 {
		sum += float64(a&0xffff) + float64(b&0xffff) + float64(c&0xffff)
		a, b, c = a>>16, b>>16, c>>16
	}
	return sum/65536 - 6
}

// A field has this many lattice points along each side and repeats beyond them.
const fieldSize = 256

// Field is smooth noise over the plane: values from -1 to 1 at integer coordinates, with a smooth
// surface between them. It repeats every 256 units.
type Field struct {
	values [fieldSize * fieldSize]float32
}

func NewField(seed ...uint64) *Field {
	source, f := NewSource(seed...), &Field{}
	for i := range f.values {
		f.values[i] = float32(source.Float()*2 - 1)
	}
	return f
}

func (f *Field) At(x, y float64) float64 {
	x0, y0 := math.Floor(x), math.Floor(y)
	u, v := fade(x-x0), fade(y-y0)
	i, j := int(x0)&(fieldSize-1), int(y0)&(fieldSize-1)
	i1, row, row1 := (i+1)&(fieldSize-1), j*fieldSize, ((j+1)&(fieldSize-1))*fieldSize
	a, b := float64(f.values[row+i]), float64(f.values[row+i1])
	c, d := float64(f.values[row1+i]), float64(f.values[row1+i1])
	a += (b - a) * u
	c += (d - c) * u
	return a + (c-a)*v
}

// offsetX and offsetY keep the lattices of a fractal's octaves from lining up.
const offsetX, offsetY = 17.3, 31.7

// Fractal sums octaves of the field. Each has twice the frequency and half the amplitude of the one before. Values
// stay between -1 and 1.
func (f *Field) Fractal(x, y float64, octaves int) float64 {
	sum, height, total := 0.0, 1.0, 0.0
	for range octaves {
		sum += height * f.At(x, y)
		total += height
		x, y, height = x*2+offsetX, y*2+offsetY, height/2
	}
	return sum / total
}

func fade(t float64) float64 { return t * t * (3 - 2*t) }
