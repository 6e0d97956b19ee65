// Package look describes edits as data. [Read] returns the ordinary edits of a prompt, which are
// FFmpeg filters. [Parse] converts a prompt to a [Look]: a list of simple operations such as
// "smooth the areas between edges", "change colors by this table" or "lay this paper over it". It
// runs no program and reads no file. Each engine renders the operations in its own way.
//
// The look depends only on the prompt and the seed.
//
// Lengths are in units: fractions of the picture's shorter side, so that a look is the same at
// every size. Colors between operations are sRGB as stored.
package look

type Look struct {
	// Names lists the requested lexicon entries in order of application. It may be empty.
	Names []string
	Ops   []Op
	Span  Span
	// Faint means that the look is mixed with the unchanged picture.
	Faint bool
	// Seed determines random details, such as the position of grain.
	Seed uint32
}

// Live returns the look for a live video. It changes nothing if it is limited to a span.
func (l Look) Live() Look {
	switch {
	case l.Span != (Span{}):
		return Look{Seed: l.Seed}
	case l.Faint:
		l.Ops = stronger(l.Ops, 0.5)
	}
	return l
}

// Op is one operation on a picture: [Smooth], [Flatten], [Pixelate], [Clarity], [Grade], [Lines],
// [Blur], [Bloom], [Fringe], [Warp] or [Layer].
type Op any

// Softens reports whether the first operation leaves no fine detail. It skips fringes, and warps without waves, at
// the start. The function `enough` reports whether a radius is large enough to leave no fine detail.
func Softens(ops []Op, enough func(Smooth) bool) bool {
	for _, op := range ops {
		switch op := op.(type) {
		case Warp:
			if op.Waves() {
				return false
			}
			continue
		case Fringe:
			continue
		case Flatten:
			return true
		case Smooth:
			return enough(op)
		}
		return false
	}
	return false
}

// Coarse reports whether an operation adds no detail to a picture without fine detail.
func Coarse(op Op) bool {
	switch op := op.(type) {
	case Smooth, Flatten, Clarity, Fringe, Blur, Bloom:
		return true
	case Grade:
		return op.LUT.Gentle()
	}
	return false
}

// Smooth smooths the areas between edges and preserves the edges (a bilateral filter).
type Smooth struct {
	// Radius is the spatial standard deviation, in units.
	Radius float64
	// Range is the standard deviation of the difference up to which neighboring points mix. It is a fraction of the
	// range from black to white.
	Range float64
}

// Flatten turns the picture into flat patches with crisp borders (a median filter).
type Flatten struct {
	// Radius is half the side length, in units, of the square whose median is taken.
	Radius float64
}

// Pixelate fills each square with the mean color of its pixels. Block is the side of a square, in units.
type Pixelate struct{ Block float64 }

// Clarity amplifies each pixel's difference from its surroundings.
type Clarity struct {
	// Radius is half the side length, in units, of the square around a pixel that counts as its surroundings.
	Radius float64
	// Amount is the fraction of the difference that is added.
	Amount float64
}

type Grade struct{ LUT *LUT }

// Lines inks areas that are darker than their surroundings.
//
// With luma from 0 to 1, r = (luma + bias) / (blurred luma + bias). If r is at least To, there is
// no ink. If r is at most From, there is full ink: the picture is multiplied by the ink's color.
type Lines struct {
	// Width is half the side length, in units, of the square that the blur averages. It is about the width of a line.
	Width float64
	// From and To are ratios from 0 to 1, with From less than To.
	From, To float64
	Ink      [3]float64
	// Fill changes the picture between the lines. nil leaves it unchanged.
	Fill *LUT
}

// LinesBias prevents noise in dark areas from becoming lines; see [Lines].
const LinesBias = 0.12

// Blur has a standard deviation of Radius units.
type Blur struct{ Radius float64 }

// Bloom makes bright areas glow: light above Threshold is blurred and screened over the picture.
type Bloom struct {
	// Radius is the standard deviation of the blur, in units.
	Radius float64
	// Threshold is the level above which a channel glows: at least 0 and below 1.
	Threshold float64
	Amount    float64
}

// Fringe shifts red to the left and blue to the right, as bad lenses and tapes do.
type Fringe struct{ Shift float64 }

type entry struct {
	name string
	// medium is true for artistic media, such as paint. Moods, such as weather, are applied first.
	medium bool
	ops    func() []Op
}

func grade(adjustments ...Adjust) Grade { return Grade{NewLUT(adjustments...)} }
func add(t Texture) Layer               { return Layer{Texture: t, Mode: Add} }
func multiply(t Texture) Layer          { return Layer{Texture: t, Mode: Multiply} }
func screen(t Texture, r, g, b float64) Layer {
	return Layer{Texture: t, Mode: Screen, Tint: [3]float64{r, g, b}}
}

func (l Layer) jumping(perSecond float64) Layer {
	l.Motion = Motion{Hold: 1 / perSecond}
	return l
}

// soft marks a layer as having no detail that would be lost at half size.
func (l Layer) soft() Layer {
	l.Soft = true
	return l
}

func (l Layer) drifting(right, down float64) Layer {
	l.Motion = Motion{Right: right, Down: down}
	return l
}

// inverse turns a texture of light into one of shade.
func inverse(t Texture) Texture {
	return func(s *Sheet) {
		t(s)
		for i, v := range s.Values {
			s.Values[i] = 1 - v
		}
	}
}

// lexicon returns every look by name, moods first. If two phrases match, the longer one wins.
func lexicon() []entry { return append(moods(), mediums()...) }
