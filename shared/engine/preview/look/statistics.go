package look

import (
	"math"

	"cutroom/shared/engine/preview/look/oklab"
)

// Statistics describes a picture's colors: the mean and covariance of Oklab's L, A and B.
type Statistics struct {
	Mean       [3]float64
	Covariance [3][3]float64
}

// Measure reads pixels of three bytes each: red, green, blue.
func Measure(pixels []byte) Statistics {
	var s Statistics
	count := float64(len(pixels) / 3)
	if count == 0 {
		return s
	}
	points := make([][3]float64, 0, len(pixels)/3)
	for i := 0; i+2 < len(pixels); i += 3 {
		c := oklab.FromSRGB(float64(pixels[i])/255, float64(pixels[i+1])/255, float64(pixels[i+2])/255)
		p := [3]float64{c.L, c.A, c.B}
		points = append(points, p)
		for axis, v := range p {
			s.Mean[axis] += v / count
		}
	}
	for _, p := range points {
		for i := range 3 {
			for j := range 3 {
				s.Covariance[i][j] += (p[i] - s.Mean[i]) * (p[j] - s.Mean[j]) / count
			}
		}
	}
	return s
}

// Transfer returns the color change that gives a picture with the first statistics the colors of the second. It
// is the linear map between two normal distributions that moves colors least (Pitié and Kokaram, "The linear
// Monge-Kantorovitch linear colour mapping for example-based colour transfer", 2007). The contrast change is
// limited, so that a reference in one flat color does not wipe out the picture.
func Transfer(from, to Statistics) *LUT {
	// A picture without any variation has no principal directions to map.
	a, b := from.Covariance, to.Covariance
	for axis, least := range [3]float64{0.08, 0.012, 0.012} {
		a[axis][axis] += least * least
		b[axis][axis] += least * least
	}
	root := symmetric(a, math.Sqrt)
	inverse := symmetric(a, func(v float64) float64 { return 1 / math.Sqrt(v) })
	middle := symmetric(product(product(root, b), root), math.Sqrt)
	// Limit how far the map stretches each principal direction.
	change := symmetric(product(product(inverse, middle), inverse), func(v float64) float64 {
		return max(0.45, min(2.2, v))
	})
	return NewLUT(func(c oklab.Color) oklab.Color {
		d := [3]float64{c.L - from.Mean[0], c.A - from.Mean[1], c.B - from.Mean[2]}
		var out [3]float64
		for i := range 3 {
			out[i] = to.Mean[i]
			for j := range 3 {
				out[i] += change[i][j] * d[j]
			}
		}
		// Keep half of the picture's own lightness contrast, which carries the scene.
		l := 0.5*out[0] + 0.5*(c.L+0.5*(to.Mean[0]-from.Mean[0]))
		// Reduce color casts in black and white, which no light would cause.
		k := smoothstep(-0.02, 0.16, l) * smoothstep(1.04, 0.90, l)
		k = 0.35 + 0.65*k
		return oklab.Color{L: l, A: out[1] * k, B: out[2] * k}
	})
}

type matrix3 = [3][3]float64

func product(a, b matrix3) matrix3 {
	var out matrix3
	for i := range 3 {
		for j := range 3 {
			for k := range 3 {
				out[i][j] += a[i][k] * b[k][j]
			}
		}
	}
	return out
}

// symmetric applies a function to a symmetric matrix's eigenvalues, which it finds by Jacobi rotations.
func symmetric(m matrix3, f func(float64) float64) matrix3 {
	vectors := matrix3{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	for range 12 {
		for p := range 2 {
			for q := p + 1; q < 3; q++ {
				if math.Abs(m[p][q]) < 1e-15 {
					continue
				}
				theta := 0.5 * math.Atan2(2*m[p][q], m[p][p]-m[q][q])
				sin, cos := math.Sincos(theta)
				turn := matrix3{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
				turn[p][p], turn[q][q], turn[p][q], turn[q][p] = cos, cos, -sin, sin
				m = product(product(transpose(turn), m), turn)
				vectors = product(vectors, turn)
			}
		}
	}
	var values matrix3
	for i := range 3 {
		values[i][i] = f(max(m[i][i], 1e-9))
	}
	return product(product(vectors, values), transpose(vectors))
}

func transpose(m matrix3) matrix3 {
	for i := range 3 {
		for j := i + 1; j < 3; j++ {
			m[i][j], m[j][i] = m[j][i], m[i][j]
		}
	}
	return m
}
