package preview_test

import (
	"math"
	"strconv"

	"cutroom/shared/engine/preview/look/oklab"
)

type picture struct {
	width, height int
	pixels        []byte
}

func itoa(i int) string { return strconv.Itoa(i) }

// difference returns the mean difference over all channels, pixels and frames, 0 to 255.
func difference(a, b []picture) float64 {
	sum, count := 0.0, 0
	for i := range min(len(a), len(b)) {
		for j, v := range a[i].pixels {
			sum += math.Abs(float64(v) - float64(b[i].pixels[j]))
			count++
		}
	}
	return sum / float64(count)
}

// traits are measurements of a picture, from 0 to 255 unless stated otherwise.
type traits struct {
	// light, contrast, black and white are the mean, the standard deviation, the 2nd percentile and the 98th
	// percentile of luma.
	light, contrast, black, white float64
	// color is the mean Oklab chroma times 1000.
	color float64
	// warmth is the mean of red minus the mean of blue.
	warmth           float64
	red, green, blue float64
	// edges is the mean luma step between neighboring pixels. grain is the mean of luma's second differences.
	edges, grain float64
	// tones is how many of 4096 colors (4 bits per channel) cover nine tenths of the picture.
	tones int
	// borders is the luma of the outermost pixels. middle is the luma around the center.
	borders, middle float64
}

func (p picture) at(x, y int) (r, g, b float64) {
	i := 3 * (y*p.width + x)
	return float64(p.pixels[i]), float64(p.pixels[i+1]), float64(p.pixels[i+2])
}

func (p picture) luma(x, y int) float64 {
	r, g, b := p.at(x, y)
	return 0.2126*r + 0.7152*g + 0.0722*b
}

func measure(p picture) traits {
	var m traits
	var lumas [256]int
	tones := map[[3]int]int{}
	n := float64(p.width * p.height)
	borders, middle := 0.0, 0.0
	for y := range p.height {
		for x := range p.width {
			r, g, b := p.at(x, y)
			l := p.luma(x, y)
			m.light += l / n
			m.red, m.green, m.blue = m.red+r/n, m.green+g/n, m.blue+b/n
			m.color += 1000 * oklab.FromSRGB(r/255, g/255, b/255).Chroma() / n
			lumas[int(l)]++
			tones[[3]int{int(r) >> 4, int(g) >> 4, int(b) >> 4}]++
			if x > 0 && y > 0 {
				m.edges += (math.Abs(l-p.luma(x-1, y)) + math.Abs(l-p.luma(x, y-1))) / 2 / n
			}
			if x > 0 && x+1 < p.width {
				m.grain += math.Abs(2*l-p.luma(x-1, y)-p.luma(x+1, y)) / n
			}
			if x < 2 || y < 2 || x >= p.width-2 || y >= p.height-2 {
				m.borders += l
				borders++
			}
			if math.Abs(float64(x)-float64(p.width)/2) < float64(p.width)/6 &&
				math.Abs(float64(y)-float64(p.height)/2) < float64(p.height)/6 {
				m.middle += l
				middle++
			}
		}
	}
	m.borders, m.middle = m.borders/borders, m.middle/middle
	m.warmth = m.red - m.blue
	variance, below := 0.0, 0
	for l, count := range lumas {
		variance += float64(count) * math.Pow(float64(l)-m.light, 2) / n
		if float64(below) < 0.02*n {
			m.black = float64(l)
		}
		if float64(below) < 0.98*n {
			m.white = float64(l)
		}
		below += count
	}
	m.contrast = math.Sqrt(variance)
	covered := 0
	for ; float64(covered) < 0.9*n; m.tones++ {
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

// hues returns the fraction of chroma whose hue is near one of the given hues. within is the maximum difference.
func hues(p picture, within float64, around ...float64) float64 {
	sum, near := 0.0, 0.0
	for y := range p.height {
		for x := range p.width {
			r, g, b := p.at(x, y)
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

// blockiness returns the mean luma step inside squares of the given side, and the mean step between them.
func blockiness(p picture, side int) (inside, between float64) {
	var sums, counts [2]float64
	for y := range p.height {
		for x := 1; x < p.width; x++ {
			at := 0
			if x%side == 0 {
				at = 1
			}
			sums[at] += math.Abs(p.luma(x, y) - p.luma(x-1, y))
			counts[at]++
		}
	}
	return sums[0] / counts[0], sums[1] / counts[1]
}

// likeness returns the correlation, -1 to 1, between two pictures' coarse edges.
func likeness(a, b picture) float64 {
	const side = 6
	steps := func(p picture) []float64 {
		width, height := p.width/side, p.height/side
		coarse := make([]float64, width*height)
		for i := range coarse {
			for k := range side * side {
				coarse[i] += p.luma(i%width*side+k%side, i/width*side+k/side) / (side * side)
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
	return correlation(steps(a), steps(b))
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
