// Package pixeltest measures and compares pictures in tests.
package pixeltest

import (
	"image"
	"image/draw"
	"math"
	"testing"

	"cutroom/shared/engine/preview/look/oklab"
)

// Picture has three bytes per pixel: red, green and blue.
type Picture struct {
	Width, Height int
	Pixels        []byte
}

// Of returns an image without its transparency.
func Of(from image.Image) Picture {
	size := from.Bounds().Size()
	flat := image.NewRGBA(image.Rect(0, 0, size.X, size.Y))
	draw.Draw(flat, flat.Bounds(), from, from.Bounds().Min, draw.Src)
	p := Picture{Width: size.X, Height: size.Y}
	for i := 0; i < len(flat.Pix); i += 4 {
		p.Pixels = append(p.Pixels, flat.Pix[i:i+3]...)
	}
	return p
}

// Part returns the pixels of an area.
func (p Picture) Part(area image.Rectangle) Picture {
	cut := Picture{Width: area.Dx(), Height: area.Dy()}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		cut.Pixels = append(cut.Pixels, p.Pixels[3*(y*p.Width+area.Min.X):3*(y*p.Width+area.Max.X)]...)
	}
	return cut
}

// Apart averages two pictures of the same size over squares with the given side, in pixels, and returns the mean
// difference between the channel levels, from 0 to 255. Averages even out grain and compression.
func (p Picture) Apart(other Picture, side int) float64 {
	var sum, n float64
	for y := 0; y+side <= p.Height; y += side {
		for x := 0; x+side <= p.Width; x += side {
			var d [3]float64
			for i := range side * side {
				r, g, bl := p.At(x+i%side, y+i/side)
				r2, g2, b2 := other.At(x+i%side, y+i/side)
				d[0], d[1], d[2] = d[0]+r-r2, d[1]+g-g2, d[2]+bl-b2
			}
			sum += (math.Abs(d[0]) + math.Abs(d[1]) + math.Abs(d[2])) / 3
			n++
		}
	}
	return sum / n / float64(side*side)
}

// Difference returns the mean difference over all channels, pixels and frames, 0 to 255.
func Difference(a, b []Picture) float64 {
	sum, count := 0.0, 0
	for i := range min(len(a), len(b)) {
		for j, v := range a[i].Pixels {
			sum += math.Abs(float64(v) - float64(b[i].Pixels[j]))
			count++
		}
	}
	return sum / float64(count)
}

// Traits are measurements of a picture, from 0 to 255 unless stated otherwise.
type Traits struct {
	// Light, Contrast, Black and White are the mean, the standard deviation, the 2nd percentile and the 98th
	// percentile of luma.
	Light, Contrast, Black, White float64
	// Color is the mean Oklab chroma times 1000.
	Color float64
	// Warmth is the mean of red minus the mean of blue.
	Warmth           float64
	Red, Green, Blue float64
	// Edges is the mean luma step between neighboring pixels. Grain is the mean of luma's second differences.
	Edges, Grain float64
	// Tones is how many of 4096 colors (4 bits per channel) cover nine tenths of the picture.
	Tones int
	// Borders is the luma of the outermost pixels. Middle is the luma around the center.
	Borders, Middle float64
}

func (p Picture) At(x, y int) (r, g, b float64) {
	i := 3 * (y*p.Width + x)
	return float64(p.Pixels[i]), float64(p.Pixels[i+1]), float64(p.Pixels[i+2])
}

func (p Picture) Luma(x, y int) float64 {
	r, g, b := p.At(x, y)
	return 0.2126*r + 0.7152*g + 0.0722*b
}

// Measure returns measurements of a picture.
func (p Picture) Measure() Traits {
	var m Traits
	var lumas [256]int
	tones := map[[3]int]int{}
	n := float64(p.Width * p.Height)
	borders, middle := 0.0, 0.0
	for y := range p.Height {
		for x := range p.Width {
			r, g, b := p.At(x, y)
			l := p.Luma(x, y)
			m.Light += l / n
			m.Red, m.Green, m.Blue = m.Red+r/n, m.Green+g/n, m.Blue+b/n
			m.Color += 1000 * oklab.FromSRGB(r/255, g/255, b/255).Chroma() / n
			lumas[int(l)]++
			tones[[3]int{int(r) >> 4, int(g) >> 4, int(b) >> 4}]++
			if x > 0 && y > 0 {
				m.Edges += (math.Abs(l-p.Luma(x-1, y)) + math.Abs(l-p.Luma(x, y-1))) / 2 / n
			}
			if x > 0 && x+1 < p.Width {
				m.Grain += math.Abs(2*l-p.Luma(x-1, y)-p.Luma(x+1, y)) / n
			}
			if x < 2 || y < 2 || x >= p.Width-2 || y >= p.Height-2 {
				m.Borders += l
				borders++
			}
			if math.Abs(float64(x)-float64(p.Width)/2) < float64(p.Width)/6 &&
				math.Abs(float64(y)-float64(p.Height)/2) < float64(p.Height)/6 {
				m.Middle += l
				middle++
			}
		}
	}
	m.Borders, m.Middle = m.Borders/borders, m.Middle/middle
	m.Warmth = m.Red - m.Blue
	variance, below := 0.0, 0
	for l, count := range lumas {
		variance += float64(count) * math.Pow(float64(l)-m.Light, 2) / n
		if float64(below) < 0.02*n {
			m.Black = float64(l)
		}
		if float64(below) < 0.98*n {
			m.White = float64(l)
		}
		below += count
	}
	m.Contrast = math.Sqrt(variance)
	covered := 0
	for ; float64(covered) < 0.9*n; m.Tones++ {
		var most [3]int
		for tone, count := range tones {
			if count > tones[most] || tones[most] == 0 {
				most = tone
			}
		}
		covered += tones[most]
		delete(tones, most)
	}
	return m
}

// Hues returns the fraction of chroma whose hue is near one of the given hues. within is the maximum difference.
func (p Picture) Hues(within float64, around ...float64) float64 {
	sum, near := 0.0, 0.0
	for y := range p.Height {
		for x := range p.Width {
			r, g, b := p.At(x, y)
			c := oklab.FromSRGB(r/255, g/255, b/255)
			hue := math.Atan2(c.B, c.A) * 180 / math.Pi
			sum += c.Chroma()
			for _, h := range around {
				if math.Abs(math.Remainder(hue-h, 360)) <= within {
					near += c.Chroma()
					break
				}
			}
		}
	}
	return near / sum
}

// Blockiness returns the mean luma step inside squares of the given side, and the mean step between them.
func (p Picture) Blockiness(side int) (inside, between float64) {
	var sums, counts [2]float64
	for y := range p.Height {
		for x := 1; x < p.Width; x++ {
			at := 0
			if x%side == 0 {
				at = 1
			}
			sums[at] += math.Abs(p.Luma(x, y) - p.Luma(x-1, y))
			counts[at]++
		}
	}
	return sums[0] / counts[0], sums[1] / counts[1]
}

// Likeness returns the correlation, -1 to 1, between two pictures' coarse edges.
func (p Picture) Likeness(other Picture) float64 {
	const side = 6
	steps := func(p Picture) []float64 {
		width, height := p.Width/side, p.Height/side
		coarse := make([]float64, width*height)
		for i := range coarse {
			for k := range side * side {
				coarse[i] += p.Luma(i%width*side+k%side, i/width*side+k/side) / (side * side)
			}
		}
		var out []float64
		for y := 1; y < height; y++ {
			for x := 1; x < width; x++ {
				v := coarse[y*width+x]
				out = append(out, math.Hypot(v-coarse[y*width+x-1], v-coarse[(y-1)*width+x]))
			}
		}
		return out
	}
	return correlation(steps(p), steps(other))
}

func correlation(a, b []float64) float64 {
	var meanA, meanB float64
	for i := range a {
		meanA, meanB = meanA+a[i]/float64(len(a)), meanB+b[i]/float64(len(a))
	}
	var ab, aa, bb float64
	for i := range a {
		ab += (a[i] - meanA) * (b[i] - meanB)
		aa += (a[i] - meanA) * (a[i] - meanA)
		bb += (b[i] - meanB) * (b[i] - meanB)
	}
	return ab / math.Sqrt(aa*bb+1e-12)
}

// Details returns how alike the details of two pictures are, from -1 to 1.
func (p Picture) Details(other Picture) float64 {
	sharp := func(p Picture) (steps []float64) {
		for y := 2; y < p.Height; y++ {
			for x := 2; x < p.Width; x++ {
				steps = append(steps, p.Luma(x, y)-p.Luma(x-2, y), p.Luma(x, y)-p.Luma(x, y-2))
			}
		}
		return steps
	}
	return correlation(sharp(p), sharp(other))
}

// Require stops the test if there is an error.
func Require(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
