package noise

import (
	"math"
	"testing"
)

func TestNoiseLinesMatchField(t *testing.T) {
	f := NewField(3, 4)
	for _, y := range []float64{0, 0.25, 17.9, 255.5, 256, 700.1, -3.7} {
		line, fractal := f.Line(y), f.FractalLine(y, 3)
		for x := -5.3; x < 300; x += 0.37 {
			if got, want := line.At(x), f.At(x, y); math.Abs(got-want) > 1e-12 {
				t.Fatalf("at %v, %v the line has %v, the field %v", x, y, got, want)
			}
			if got, want := fractal(x), f.Fractal(x, y, 3); math.Abs(got-want) > 1e-12 {
				t.Fatalf("at %v, %v the line has a fractal of %v, the field %v", x, y, got, want)
			}
		}
	}
}
