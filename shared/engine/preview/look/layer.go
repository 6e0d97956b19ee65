package look

import (
	"image"
	"image/color"
	"math"
	"runtime"

	"cutroom/shared/engine/preview/look/noise"
	"cutroom/shared/platform/panics"
)

// Layer is a texture that is drawn over the picture.
type Layer struct {
	Texture Texture
	Mode    Mode
	// Tint colors the texture, with each channel 0 to 1: the light of a Screen layer or the shade
	// of a Multiply layer. Add layers ignore it.
	Tint   [3]float64
	Motion Motion
	// Soft means that the texture loses no detail at half size.
	Soft bool
}

// Mode is how a texture is combined with the picture. All values are 0 to 1.
type Mode int

const (
	// Multiply darkens: picture x texture.
	Multiply Mode = iota
	// Screen lightens: 1 - (1 - picture) x (1 - texture).
	Screen
	// Add lightens or darkens: picture + texture - 1/2.
	Add
)

type Motion struct {
	// Hold is how long the texture stays in place before it jumps, in seconds. 0 means forever.
	Hold float64
	// Right and Down are speeds in units per second. The texture wraps around at the borders.
	Right, Down float64
}

// Texture draws a gray picture: it sets every value of the sheet, 0 to 1.
type Texture func(*Sheet)

type Sheet struct {
	Width, Height int
	Unit          float64
	Seed          uint64
	// Values are 0 to 1, row by row from the top.
	Values []float32
}

// The sheet of a jumping layer is larger than the picture by this margin, in units.
const JumpMargin = 0.25

// JumpAcross and JumpDown determine which part of a jumping layer's sheet covers the picture. After n jumps, the part
// starts at the fractional parts of n x JumpAcross and n x JumpDown, as fractions of the margin. The sequence of
// positions never repeats.
const (
	JumpAcross = 0.618034
	JumpDown   = 0.754878
)

// Pixels converts a length in units to whole pixels, at least one, for a picture of the given size.
func Pixels(length float64, width, height int) int {
	return max(1, int(math.Round(length*float64(min(width, height)))))
}

func newSheet(width, height int, seed uint32, motion Motion) *Sheet {
	unit := float64(min(width, height))
	if motion.Hold > 0 {
		margin := int(JumpMargin * unit)
		width, height = width+margin, height+margin
	}
	return &Sheet{Width: width, Height: height, Unit: unit, Seed: uint64(seed), Values: make([]float32, width*height)}
}

// Draw draws the texture for a picture size in pixels. The texture of a jumping layer is larger by JumpMargin on each
// axis.
func (l Layer) Draw(width, height int, seed uint32) image.Image {
	sheet := newSheet(width, height, seed, l.Motion)
	l.Texture(sheet)
	bounds := image.Rect(0, 0, sheet.Width, sheet.Height)
	if l.Gray() {
		picture := image.NewGray(bounds)
		for i, v := range sheet.Values {
			picture.Pix[i] = level(float64(v))
		}
		return picture
	}
	var table [256]color.RGBA
	for i := range table {
		v := float64(i) / 255
		c := l.Tint
		for channel := range c {
			if l.Mode == Multiply {
				c[channel] += (1 - c[channel]) * v
			} else {
				c[channel] *= v
			}
		}
		table[i] = color.RGBA{level(c[0]), level(c[1]), level(c[2]), 255}
	}
	picture := image.NewRGBA(bounds)
	for i, v := range sheet.Values {
		c := table[level(float64(v))]
		copy(picture.Pix[4*i:], []uint8{c.R, c.G, c.B, c.A})
	}
	return picture
}

// with combines two layers into one. It returns nil if their modes or motions differ, or if one of them is tinted.
func (l Layer) with(other Layer) Op {
	if l.Mode != other.Mode || l.Motion != other.Motion || !l.Gray() || !other.Gray() {
		return nil
	}
	combine := func(a, b float32) float32 { return a * b }
	switch l.Mode {
	case Screen:
		combine = func(a, b float32) float32 { return 1 - (1-a)*(1-b) }
	case Add:
		combine = func(a, b float32) float32 { return a + b - 0.5 }
	}
	l.Soft = l.Soft && other.Soft
	first, second := l.Texture, other.Texture
	l.Texture = func(s *Sheet) {
		first(s)
		over := *s
		over.Values = make([]float32, len(s.Values)) // textures may expect an empty sheet
		second(&over)
		for i, v := range over.Values {
			s.Values[i] = combine(s.Values[i], v)
		}
	}
	return l
}

// Gray reports whether the tint leaves the texture gray.
func (l Layer) Gray() bool {
	switch l.Mode {
	case Multiply:
		return l.Tint == [3]float64{}
	case Screen:
		return l.Tint == [3]float64{1, 1, 1}
	}
	return true
}

func level(v float64) uint8 { return uint8(max(0, min(255, v*255+0.5))) }

// fill sets each value from its position, in units from the corner. It uses several goroutines.
func (s *Sheet) fill(value func(x, y float64) float64) {
	s.rows(func(row int) {
		line, y := s.Values[row*s.Width:][:s.Width], (float64(row)+0.5)/s.Unit
		for i := range line {
			line[i] = float32(clamp(value((float64(i)+0.5)/s.Unit, y)))
		}
	})
}

// rows divides the rows among half as many goroutines as there are processors, but at least two. A server in the
// same process needs an idle processor, because only then does the scheduler poll the network.
func (s *Sheet) rows(do func(row int)) {
	bands := max(2, runtime.GOMAXPROCS(0)/2)
	var done panics.Group
	for band := range bands {
		done.Go(func() {
			for row := s.Height * band / bands; row < s.Height*(band+1)/bands; row++ {
				do(row)
			}
		})
	}
	done.Wait()
}

func (s *Sheet) source(purpose uint64) *noise.Source { return noise.NewSource(s.Seed, purpose) }
func (s *Sheet) field(purpose uint64) *noise.Field   { return noise.NewField(s.Seed, purpose) }
func (s *Sheet) aspect() (width, height float64) {
	return float64(s.Width) / s.Unit, float64(s.Height) / s.Unit
}

// soft is a smooth function that is computed only at regular intervals and interpolated between them.
type soft struct{ *Sheet }

func (c soft) at(x, y float64) float64 { return c.between(x*c.Unit+0.5, y*c.Unit+0.5) }

// smooth samples a smooth function at the given distance, in units. Use it for functions that
// change little over several pixels, such as octaves of noise.
func (s *Sheet) smooth(distance float64, value func(x, y float64) float64) soft {
	c := s.coarse(distance)
	c.rows(func(row int) {
		for i := range c.Width {
			c.Values[row*c.Width+i] = float32(value(float64(i)/c.Unit, float64(row)/c.Unit))
		}
	})
	return soft{c}
}

// fractal is [noise.Field.Fractal] with the given number of waves per unit, sampled coarsely.
func (s *Sheet) fractal(of *noise.Field, waves float64, octaves int) soft {
	// Use an eighth of the shortest wave.
	distance := 1 / (waves * float64(int(1)<<(octaves-1)) * 8)
	return s.smooth(distance, func(x, y float64) float64 { return of.Fractal(x*waves, y*waves, octaves) })
}

// place calls the function `draw` for every pixel within reach of the position (cx, cy), with all lengths in units. A
// shape that crosses a border continues at the opposite border. Where shapes overlap, the higher value stays.
func (s *Sheet) place(cx, cy, reachX, reachY float64, draw func(dx, dy float64) float64) {
	x0, x1 := int(math.Floor((cx-reachX)*s.Unit)), int(math.Ceil((cx+reachX)*s.Unit))
	y0, y1 := int(math.Floor((cy-reachY)*s.Unit)), int(math.Ceil((cy+reachY)*s.Unit))
	for y := y0; y <= y1; y++ {
		row := s.Values[wrap(y, s.Height)*s.Width:][:s.Width]
		for x := x0; x <= x1; x++ {
			at := wrap(x, s.Width)
			row[at] = max(row[at], float32(clamp(draw((float64(x)+0.5)/s.Unit-cx, (float64(y)+0.5)/s.Unit-cy))))
		}
	}
}

func wrap(i, n int) int {
	if uint(i) < uint(n) {
		return i
	}
	return (i%n + n) % n
}

func bell(x float64) float64 { return math.Exp(-x * x) }

func (s *Sheet) between(x, y float64) float64 {
	x, y = x-0.5, y-0.5
	x0, y0 := int(math.Floor(x)), int(math.Floor(y))
	u, v := float32(x-float64(x0)), float32(y-float64(y0))
	left, right := wrap(x0, s.Width), wrap(x0+1, s.Width)
	top, bottom := s.Values[wrap(y0, s.Height)*s.Width:], s.Values[wrap(y0+1, s.Height)*s.Width:]
	a, b := top[left]+(top[right]-top[left])*u, bottom[left]+(bottom[right]-bottom[left])*u
	return float64(a + (b-a)*v)
}

// coarse returns a sheet that covers the same area with larger pixels. size is the size of these pixels in units.
func (s *Sheet) coarse(size float64) *Sheet {
	step := max(1, size*s.Unit)
	c := &Sheet{
		Width: int(float64(s.Width)/step) + 2, Height: int(float64(s.Height)/step) + 2, Unit: s.Unit / step, Seed: s.Seed,
	}
	c.Values = make([]float32, c.Width*c.Height)
	return c
}

// Warp gives each pixel the color of another pixel, which is a whole number of pixels away.
type Warp struct {
	// Across and Down give the source of each point: 1/2 is the point itself, 0 is Reach to the left or above, and 1
	// is Reach to the right or below. nil means 1/2 everywhere.
	Across, Down Texture
	Reach        float64
	Motion       Motion
}

// Waves reports whether the warp moves smoothly, so that steps of two pixels would be visible.
func (w Warp) Waves() bool { return w.Motion.Right != 0 || w.Motion.Down != 0 }

// WarpZero is the level in a warp map that means no displacement. Each level above or below is one pixel.
const WarpZero = 128

// Draw draws the warp's maps for a size in pixels.
func (w Warp) Draw(width, height int, seed uint32) (across, down *image.Gray) {
	draw := func(texture Texture) *image.Gray {
		sheet := newSheet(width, height, seed, w.Motion)
		if texture == nil {
			texture = func(s *Sheet) { s.fill(func(_, _ float64) float64 { return 0.5 }) }
		}
		texture(sheet)
		picture := image.NewGray(image.Rect(0, 0, sheet.Width, sheet.Height))
		reach := 2 * w.Reach * sheet.Unit
		for i, v := range sheet.Values {
			picture.Pix[i] = uint8(max(0, min(255, math.Round((float64(v)-0.5)*reach)+WarpZero)))
		}
		return picture
	}
	return draw(w.Across), draw(w.Down)
}

// wobble is smooth noise, centered on 1/2. scale is the number of waves per unit. Each use in a look needs a
// different purpose.
func wobble(scale float64, purpose uint64) Texture {
	return func(s *Sheet) {
		waves := s.fractal(s.field(50+purpose), scale, 2)
		s.fill(func(x, y float64) float64 { return 0.5 + 0.75*waves.at(x, y) })
	}
}

// ripples draws seamless waves centered on 1/2. count is the number of waves over the height, or over the width if
// across is set.
func ripples(count int, across bool) Texture {
	return func(s *Sheet) {
		width, height := s.aspect()
		s.fill(s.smooth(1.0/240, func(x, y float64) float64 {
			u, v := y/height*2*math.Pi, x/width*2*math.Pi
			if across {
				u, v = v, u
			}
			n := float64(count)
			return 0.5 + 0.3*math.Sin(u*n+1.2*math.Sin(v*2)) + 0.2*math.Sin(u*(2*n+1)+2*math.Sin(v*3+1))
		}).at)
	}
}

// tracking is the displacement of a worn tape: each line moves slightly, and the lines in one band move far.
func tracking() Texture {
	return func(s *Sheet) {
		source, jitter := s.source(52), s.field(53)
		_, height := s.aspect()
		band := source.Between(0.1, 0.95) * height
		s.fill(func(_, y float64) float64 {
			line := math.Floor(y * 240)
			torn := bell((y - band) / 0.02)
			return 0.5 + 0.02*jitter.At(line*0.61, 7) + 0.05*jitter.At(line*0.07, 31) + 0.40*torn*jitter.At(line*0.9, 90)
		})
	}
}
