package scene

import "math"

// jetty is a wooden pier from the lower edge to the horizon. The viewpoint is above x = middle.
func jetty(x, y, middle, far float64) (rgb, float64) {
	if y < far {
		return rgb{}, 0
	}
	depth := (y - far) / (1 - far)
	half := 0.05 + 0.36*depth
	across := (x - middle) / half
	if across < -1.1 || across > 1.1 {
		return rgb{}, 0
	}
	// Planks run across the jetty. Perspective makes the far ones thin.
	row := 5.2 / (depth + 0.22)
	plank, within := math.Modf(row + 40)
	wood := hex(0x7a4c4a).mix(hex(0xa56a55), 0.5+0.5*math.Sin(plank*12.9))
	wood = wood.mix(hex(0x4a2c40), 0.55*clamp(0.5-across*0.6))
	gap := smooth(0.10, 0.02, within) + smooth(0.94, 0.99, within)
	wood = wood.mix(hex(0x2a1a30), 0.75*clamp(gap))
	wood = wood.mix(hex(0xffb98a), 0.28*smooth(0.2, 1, across)*smooth(0.1, 0.3, within))
	return wood, cover(math.Abs(across)-1, 0.012/half*0.3)
}

// figure accumulates a person at one point, one body part painted over another.
type figure struct {
	x, y, t float64
	// The color painted so far, and how much of the point it covers.
	color   rgb
	covered float64
}

var (
	skin   = hex(0xf0b08c)
	yellow = hex(0xf4c534)
	seam   = hex(0x8a5a20)
	hair   = hex(0x5b2b2a)
)

// walker is a person in a raincoat, seen from behind, lit from the right.
func walker(x, y, t, middle float64) (rgb, float64) {
	// The figure's coordinates are at 1/1.8 of the picture's scale. It stands on y = 0.93.
	const size = 1.8
	x, y = (x-middle)/size, 0.425+(y-0.26)/size
	if x < -0.24 || x > 0.16 || y < 0.3 {
		return rgb{}, 0
	}
	x += 0.003 * math.Sin(t*1.4) * (0.93 - y) / 0.5
	f := figure{x: x, y: y, t: t}
	f.limbs()
	f.coat()
	f.head()
	f.scarf()
	return f.color, f.covered
}

// add paints a body part. distance is the distance from its outline.
func (f *figure) add(color rgb, distance float64) {
	a := cover(distance, 0.0011)
	f.color, f.covered = f.color.mix(color, a), f.covered+(1-f.covered)*a
}

// lit shades a round shape: dark on the left, with a warm rim on the right.
func lit(base rgb, across float64) rgb {
	shaded := base.mix(hex(0x54305e), 0.5*clamp(0.35-across*0.55))
	return shaded.mix(hex(0xffe6b8), 0.7*smooth(0.7, 0.98, across))
}

func (f *figure) limbs() {
	x, y := f.x, f.y
	for _, side := range []float64{-1, 1} {
		f.add(lit(hex(0x34406e), (x-side*0.026)/0.02), capsule(x, y, side*0.026, 0.74, side*0.029, 0.895, 0.024, 0.019))
	}
	for _, side := range []float64{-1, 1} {
		swing := 0.004 * math.Sin(f.t*1.4+side)
		f.add(skin, circle(x, y, side*0.093+swing, 0.708, 0.015))
		sleeve := capsule(x, y, side*0.056, 0.528, side*0.091+swing, 0.688, 0.027, 0.022)
		across := (x - side*(0.056+0.035*clamp((y-0.528)/0.16))) / 0.03
		f.add(lit(yellow.times(0.95), across), sleeve)
		cuff := capsule(x, y, side*0.091+swing-0.02, 0.690, side*0.091+swing+0.02, 0.690, 0.004, 0.004)
		f.add(lit(yellow.times(0.82), across), max(cuff, sleeve-0.003))
	}
}

func (f *figure) coat() {
	x, y := f.x, f.y
	down := clamp((y - 0.5) / 0.28)
	width := 0.060 + 0.040*down
	coat := lit(yellow, x/width)
	// Folds hang from the shoulders and widen towards the hem.
	fold := math.Sin(x/width*9+1.3*math.Sin(y*14)) * down
	coat = coat.mix(hex(0x9a6a2a), 0.30*smooth(0.35, 1, fold)).mix(hex(0xfff2b0), 0.16*smooth(0.4, 1, -fold))
	outline := polygon(x, y, -0.050, 0.505, 0.050, 0.505, 0.087, 0.775, -0.087, 0.775) - 0.013
	f.add(coat, outline)
	f.add(coat.mix(seam, 0.5), max(math.Abs(x+0.002)-0.0011, outline+0.004))
	f.add(coat.mix(seam, 0.35), max(math.Abs(y-0.555-0.25*x*x)-0.0012, outline+0.004))
	f.add(coat.mix(seam, 0.35), max(math.Abs(y-0.766)-0.0010, outline+0.004))
	hood := max(circle(x, y, 0, 0.507, 0.050), 0.492-y)
	f.add(lit(yellow.times(0.93), x/0.05), hood)
	f.add(coat.mix(seam, 0.4), max(math.Abs(circle(x, y, 0, 0.507, 0.047))-0.0011, 0.495-y))
}

func (f *figure) head() {
	x, y := f.x, f.y
	f.add(skin, capsule(x, y, 0, 0.47, 0, 0.492, 0.019, 0.022))
	strand := 0.5 + 0.5*math.Sin((x*0.6+(y-0.4)*0.35)*420)
	shine := lit(hair, x/0.048).mix(hex(0xb0643c), 0.35*strand*smooth(-0.03, 0.03, x))
	f.add(shine, circle(x, y, 0, 0.425, 0.047))
	for i := range 6 {
		k := float64(i)
		blow := 0.010*math.Sin(f.t*3.1+k*0.9) + 0.005*math.Sin(f.t*5.3+k)
		f.add(hair.mix(hex(0x7a3c30), 0.5*strand), capsule(x, y,
			-0.012+0.006*k, 0.43+0.006*k, -0.086+0.013*k, 0.470+0.019*k+blow, 0.033, 0.004))
	}
}

func (f *figure) scarf() {
	x, y := f.x, f.y
	for i := range 12 {
		k := float64(i)
		wave := 0.010 * math.Sin(f.t*4.2-k*0.6) * k / 12
		next := 0.010 * math.Sin(f.t*4.2-(k+1)*0.6) * (k + 1) / 12
		f.add(hex(0xe04a50).mix(hex(0x9a2a4a), 0.05*k), capsule(x, y,
			-0.035-0.012*k, 0.497+wave, -0.047-0.012*k, 0.497+next, 0.013, 0.014))
	}
	f.add(lit(hex(0xe04a50), x/0.05), capsule(x, y, -0.034, 0.492, 0.034, 0.492, 0.017, 0.017))
	f.add(hex(0xa83044), max(math.Abs(y-0.492-0.004*math.Sin(x*90))-0.0014, math.Abs(x)-0.045))
}
