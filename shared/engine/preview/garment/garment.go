// Package garment finds a person's clothes and draws new ones. Clothes are below the face, in
// colors that are rare in the face and next to the body.
package garment

import (
	"image"
	"image/color"
	"math"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/look"
	"cutroom/shared/engine/preview/look/noise"
)

type Clothes struct {
	// Table maps each color to the likelihood that it belongs to the clothes, as a gray level.
	Table *look.LUT
	// luma is the mean luma of the clothes' pixels, 0 to 1.
	luma float64
}

// bins is the number of steps per channel in a color histogram.
const bins = 16

type histogram struct {
	weights [bins][bins][bins]float64
	total   float64
}

func (h *histogram) add(pixel []byte, weight float64) {
	h.weights[pixel[0]>>4][pixel[1]>>4][pixel[2]>>4] += weight
	h.total += weight
}

// density returns how frequent a color is relative to a uniform distribution, smoothed over
// neighboring colors.
func (h *histogram) density(r, g, b float64) float64 {
	at := [3]float64{r*bins - 0.5, g*bins - 0.5, b*bins - 0.5}
	var low [3]int
	for i, v := range at {
		low[i] = int(math.Floor(v)) - 1
	}
	sum := 0.0
	for i := range 4 {
		for j := range 4 {
			for k := range 4 {
				p := [3]int{low[0] + i, low[1] + j, low[2] + k}
				weight := 1.0
				for axis, v := range p {
					if v < 0 || v >= bins {
						weight = 0
						break
					}
					weight *= max(0, 1-math.Abs(at[axis]-float64(v))/2)
				}
				if weight > 0 {
					sum += weight * h.weights[p[0]][p[1]][p[2]]
				}
			}
		}
	}
	return sum / (h.total + 1e-9)
}

// Shot is a small picture of a person, with three bytes per pixel and the face's position.
type Shot struct {
	Pixels []byte
	Face   Face
}

// Find learns the clothes' colors from shots that all have the same size. These colors are frequent
// below the face, but rare in the face, in the hair and next to the body.
func Find(shots []Shot, size catalog.Size) Clothes {
	var inside, outside histogram
	visit(shots, size, func(f Face, x, y float64, pixel []byte) {
		area := f.Torso(x, y)
		if u, v := math.Abs(x-f.X)/f.Size, (y-f.Y)/f.Size; area > 0.9 && u < 0.85 && v > 1.3 && v < 3.4 {
			inside.add(pixel, 1)
		}
		switch {
		case f.isHead(x, y):
			outside.add(pixel, 3)
		case area < 0.3:
			outside.add(pixel, 1-area)
		}
	})
	likely := func(r, g, b float64) float64 {
		in, out := inside.density(r, g, b), outside.density(r, g, b)
		// Colors that occur nowhere get a probability of one half.
		const unseen = 0.004
		p := (in + unseen) / (in + out + 2*unseen)
		t := max(0, min(1, (p-0.45)/0.2))
		return t * t * (3 - 2*t)
	}
	found := Clothes{Table: look.LUTOf(func(r, g, b float64) (float64, float64, float64) {
		v := likely(r, g, b)
		return v, v, v
	})}
	all, covered, luma := 0.0, 0.0, 0.0
	visit(shots, size, func(f Face, x, y float64, pixel []byte) {
		area := f.Torso(x, y)
		if area == 0 {
			return
		}
		r, g, b := float64(pixel[0])/255, float64(pixel[1])/255, float64(pixel[2])/255
		v := likely(r, g, b) * area
		all += area
		covered += v
		luma += v * (0.2126*r + 0.7152*g + 0.0722*b)
	})
	found.luma = luma / (covered + 1e-9)
	// If the clothes' colors do not stand out, identify the clothes by position only.
	if covered < 0.2*all || all == 0 {
		found.Table = look.LUTOf(func(_, _, _ float64) (float64, float64, float64) { return 0.85, 0.85, 0.85 })
		found.luma = 0.5
	}
	return found
}

func visit(shots []Shot, size catalog.Size, do func(f Face, x, y float64, pixel []byte)) {
	width := float64(size.Width)
	for _, shot := range shots {
		for i := range len(shot.Pixels) / 3 {
			do(shot.Face, (float64(i%size.Width)+0.5)/width, (float64(i/size.Width)+0.5)/width, shot.Pixels[3*i:][:3])
		}
	}
}

// Shade returns a table for the light and shade on the clothes, as grays around one half.
func (c Clothes) Shade() *look.LUT {
	return look.LUTOf(func(r, g, b float64) (float64, float64, float64) {
		v := 0.5 + 0.85*(0.2126*r+0.7152*g+0.0722*b-c.luma)
		return v, v, v
	})
}

// The weight of the cloth from the prompt when it is mixed with a reference image.
const worded = 0.4

// Reference is a small copy of the request's reference image.
type Reference struct {
	Size catalog.Size
	// Pixels has four bytes per pixel. The last is alpha, which is not premultiplied.
	Pixels []byte
}

// Cloth draws the subject's new clothes: the garment in the reference image, a cloth described by
// the prompt, or a mix of both.
func Cloth(reference *Reference, prompt string, seed uint32, size catalog.Size) image.Image {
	if reference == nil || reference.Size.Width < 1 || reference.Size.Height < 1 {
		return look.Cloth(prompt, seed, size.Width, size.Height)
	}
	garment := tile(reference.Pixels, reference.Size, bounds(reference.Pixels, reference.Size), size, seed)
	if prompt != "" {
		dye(garment, look.Cloth(prompt, seed, size.Width, size.Height))
	}
	return garment
}

func dye(garment, cloth *image.RGBA) {
	for i, from := range cloth.Pix {
		garment.Pix[i] = uint8(float64(garment.Pix[i])*(1-worded) + float64(from)*worded + 0.5)
	}
}

// bounds returns a rectangle well inside the garment, which is found by its difference from the
// border's color.
func bounds(pixels []byte, size catalog.Size) image.Rectangle {
	at := func(x, y int) []byte { return pixels[4*(y*size.Width+x):][:4] }
	var mean [3]float64
	count := 0.0
	border := func(visit func(p []byte)) {
		for x := range size.Width {
			visit(at(x, 0))
			visit(at(x, size.Height-1))
		}
		for y := range size.Height {
			visit(at(0, y))
			visit(at(size.Width-1, y))
		}
	}
	border(func(p []byte) {
		for i := range mean {
			mean[i] += float64(p[i])
		}
		count++
	})
	for i := range mean {
		mean[i] /= count
	}
	ground := func(p []byte) bool {
		d := math.Abs(float64(p[0])-mean[0]) + math.Abs(float64(p[1])-mean[1]) + math.Abs(float64(p[2])-mean[2])
		return p[3] < 128 || d < 48
	}
	even := 0.0
	border(func(p []byte) {
		if ground(p) {
			even++
		}
	})
	whole := image.Rect(0, 0, size.Width, size.Height)
	garment := image.Rectangle{}
	if even >= 0.7*count {
		for y := range size.Height {
			for x := range size.Width {
				if !ground(at(x, y)) {
					garment = garment.Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
	}
	// In a tiny picture, an eighth of a side is 0.
	if garment.Empty() || garment.Dx() < size.Width/8 || garment.Dy() < size.Height/8 {
		garment = whole
	}
	// The middle of the garment, below the collar and above the hem.
	return image.Rect(garment.Min.X+garment.Dx()*3/10, garment.Min.Y+garment.Dy()*3/10,
		garment.Max.X-garment.Dx()*3/10, garment.Max.Y-garment.Dy()*2/10)
}

// tile covers a picture with part of another, mirrored at each edge so that no seam shows.
func tile(pixels []byte, from catalog.Size, part image.Rectangle, size catalog.Size, seed uint32) *image.RGBA {
	picture := image.NewRGBA(image.Rect(0, 0, size.Width, size.Height))
	placed := noise.NewSource(uint64(seed), 72)
	dx, dy := placed.Float()*2, placed.Float()*2
	width := 0.30 * float64(min(size.Width, size.Height))
	height := width * float64(part.Dy()) / float64(part.Dx())
	mirror := func(v float64) float64 {
		v = math.Mod(v, 2)
		return min(v, 2-v)
	}
	for y := range size.Height {
		v := float64(part.Min.Y) + mirror(float64(y)/height+dy)*float64(part.Dy()-1)
		for x := range size.Width {
			u := float64(part.Min.X) + mirror(float64(x)/width+dx)*float64(part.Dx()-1)
			picture.SetRGBA(x, y, between(pixels, from, u, v))
		}
	}
	return picture
}

// between interpolates a color. Transparent pixels become white.
func between(pixels []byte, size catalog.Size, x, y float64) color.RGBA {
	x0, y0 := int(x), int(y)
	var sum [3]float64
	for j := range 2 {
		for i := range 2 {
			weight := (1 - math.Abs(x-float64(x0+i))) * (1 - math.Abs(y-float64(y0+j)))
			p := pixels[4*(min(y0+j, size.Height-1)*size.Width+min(x0+i, size.Width-1)):][:4]
			alpha := float64(p[3]) / 255
			for channel := range sum {
				sum[channel] += weight * (float64(p[channel])*alpha + 255*(1-alpha))
			}
		}
	}
	return color.RGBA{uint8(sum[0] + 0.5), uint8(sum[1] + 0.5), uint8(sum[2] + 0.5), 255}
}
