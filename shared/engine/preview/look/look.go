// Package look describes edits as data. [Parse] converts a prompt to a [Look]: a list of simple
// operations such as "smooth the areas between edges", "change colours by this table" or "lay
// this paper over it". It uses no program and no file. Each engine renders the operations in its
// own way.
//
// The look depends only on the prompt and the seed.
//
// Lengths are in units: fractions of the picture's shorter side, so that a look is the same at
// every size. Colours between operations are sRGB as stored.
package look

type Look struct {
	// Names lists the requested lexicon entries, in the order of application. It may be empty.
	Names []string
	Ops   []Op
	// Seed places random details, such as grain.
	Seed uint32
}

// Op is one operation on a picture: [Smooth], [Flatten], [Pixelate], [Clarity], [Grade], [Lines],
// [Bloom], [Fringe], [Warp] or [Layer].
type Op interface{ isOp() }

// Smooth smooths the areas between edges and keeps the edges (a bilateral filter).
type Smooth struct {
	// Radius is the standard deviation over the picture, in units.
	Radius float64
	// Range is the largest difference at which two points still mix, as a fraction of the range
	// from black to white (also a standard deviation).
	Range float64
}

// Flatten makes patches of one colour with crisp borders (a median filter).
type Flatten struct {
	// Radius is half the side of the examined square, in units.
	Radius float64
}

// Pixelate makes squares of one colour, the mean of the covered pixels.
type Pixelate struct {
	// Block is the side of a square, in units.
	Block float64
}

// Clarity strengthens the difference to the surroundings.
type Clarity struct {
	// Radius is half the side of the square that counts as surroundings, in units.
	Radius float64
	// Amount is the fraction of the difference that is added.
	Amount float64
}

type Grade struct{ LUT *LUT }

// Lines draws places that are darker than their surroundings.
//
// With luma from 0 to 1, r = (luma + bias) / (blurred luma + bias). If r is at least To there is
// no ink. If r is at most From the ink is full: the picture is multiplied by the ink's colour.
type Lines struct {
	// Width is half the side of the square of the blur, in units: about the width of a line.
	Width float64
	// From and To are ratios from 0 to 1, From below To.
	From, To float64
	Ink      [3]float64
	// Fill changes the picture between the lines; nil keeps it.
	Fill *LUT
}

// LinesBias prevents noise in dark areas from becoming lines; see [Lines].
const LinesBias = 0.12

// Bloom lets bright places shine: light above Threshold is blurred and screened.
type Bloom struct {
	// Radius is the standard deviation of the blur, in units.
	Radius float64
	// Threshold, 0 to below 1, is the level of a channel from which it shines.
	Threshold float64
	// Amount multiplies the light.
	Amount float64
}

// Fringe shifts red to the left and blue to the right, as bad lenses and tapes do.
type Fringe struct {
	// Shift is in units.
	Shift float64
}

func (Smooth) isOp()   {}
func (Flatten) isOp()  {}
func (Pixelate) isOp() {}
func (Clarity) isOp()  {}
func (Grade) isOp()    {}
func (Lines) isOp()    {}
func (Bloom) isOp()    {}
func (Fringe) isOp()   {}
func (Warp) isOp()     {}
func (Layer) isOp()    {}
