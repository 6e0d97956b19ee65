package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

const shore = 0.58

type coast struct {
	waves, clouds *noise.Field
	day           air
	// sunAt is the sun's position and start is the boat's, as fractions of the width.
	sunAt, start, phase float64
	sea                 rgb
	// The farthest hills are first.
	slopes [3]rgb
}

// bay is the sea in front of hills, with a sailboat and gulls.
func bay(seed uint32, light string) Scene {
	source := noise.NewSource(uint64(seed), 1)
	c := coast{
		waves: noise.NewField(uint64(seed), 2), clouds: noise.NewField(uint64(seed), 3), day: airs()[light],
		sunAt: source.Between(0.25, 0.8), start: source.Between(0.1, 0.5),
	}
	c.phase = source.Between(0, 60)
	c.sea = c.day.at(0.8).mix(hex(0x2b3f78), 0.55)
	for i := range c.slopes {
		c.slopes[i] = c.day.haze.mix(c.day.ink, [3]float64{0.42, 0.66, 0.9}[i]).mix(c.day.at(0.5), 0.25)
	}
	return func(t, aspect float64) shader { return c.at(t, aspect).color }
}

// bayView is the coast at a given time, for a picture with a given aspect ratio.
type bayView struct {
	*coast
	t, aspect float64
	sky       heaven
	hills     []profile
	boat      sailingBoat
}

func (c *coast) at(t, aspect float64) *bayView {
	o := &bayView{coast: c, t: t, aspect: aspect}
	for _, hill := range []struct{ frequency, phase, base, height, from, to float64 }{
		{1.6, 11, 0.012, 0.17, 9, 0}, {2.3, 47, 0.004, 0.12, 0.98, 0.3}, {3.1, 83, -0.004, 0.155, 0.5, 0.02},
	} {
		o.hills = append(o.hills, newProfile(aspect, func(x float64) float64 {
			rise := hill.base +
				hill.height*(0.5+0.5*c.clouds.Fractal(x*hill.frequency+hill.phase+c.phase, hill.phase, 5))
			return shore + 0.004 - (rise+0.004)*smooth(hill.from, hill.to, x/aspect)
		}))
	}
	o.sky = heaven{
		air: c.day, clouds: c.clouds, stars: c.waves, horizon: shore, sunX: c.sunAt * aspect, sunY: shore - 0.20,
		sun: 0.058, drift: t * 0.035,
	}
	o.boat = sailingBoat{
		x: (c.start + 0.05*t) * aspect, y: shore + 0.055 + 0.0035*math.Sin(t*2.1), tilt: 0.03 * math.Sin(t*1.7),
	}
	return o
}

func (o *bayView) color(x, y float64) rgb {
	var c rgb
	if y < shore {
		c = o.above(x, y, 1).mix(o.day.ink, gulls(x, y, o.t, o.aspect))
	} else {
		c = o.water(x, y)
	}
	sail, a := o.boat.color(x, y)
	return c.mix(sail, a)
}

// above returns the color of the hills, nearest first, and of the sky behind them.
func (o *bayView) above(x, y, disc float64) rgb {
	c := canvas{open: 1}
	near := 0.42 * clamp(1-math.Abs(x-o.sky.sunX)*1.3) * smooth(shore-0.2, shore, y)
	return c.land(o.hills, x, y, func(i int) rgb { return o.slopes[i].mix(o.day.haze, near) },
		func() rgb { return o.sky.color(x, y, disc) })
}

// water returns the color of the sea, which reflects the hills, the sky and the boat.
func (o *bayView) water(x, y float64) rgb {
	depth := (y - shore) / (1 - shore)
	far := 1 / (depth + 0.07)
	swell := o.waves.Fractal((x-o.aspect/2)*far*0.9+9, far*2.4+o.t*0.9, 3)
	chop := o.waves.Fractal((x-o.aspect/2)*far*3.1+o.t*0.5, far*7.5+o.t*1.9, 2)
	slope := 0.65*swell + 0.5*chop
	mirrorY := 2*shore - y + slope*0.10*(0.25+depth)
	c := o.above(x+slope*0.012, min(mirrorY, shore-0.001), 0)
	c = c.mix(o.sea, 0.22+0.4*depth)
	// This is the sun's path on the water: facets that tilt towards the sun glitter.
	path := math.Exp(-math.Abs(x-o.sky.sunX)*(9-5*depth)) * (1 - 0.65*depth)
	c = c.plus(o.day.glow.times(path * (0.22 + 1.3*smooth(0.18, 0.55, slope))))
	c = c.plus(o.day.cloud.times(0.10 * smooth(0.3, 0.6, chop)))
	mirrored, a := o.boat.color(x+slope*0.02, 2*(shore+0.072)-y+slope*0.02)
	return c.mix(mirrored.mix(o.sea, 0.3), 0.62*a*smooth(shore+0.04, shore+0.08, y))
}

type sailingBoat struct{ x, y, tilt float64 }

func (b sailingBoat) color(x, y float64) (rgb, float64) {
	x, y = x-b.x, y-b.y
	if x < -0.12 || x > 0.12 || y < -0.24 || y > 0.06 {
		return rgb{}, 0
	}
	x += y * b.tilt
	c, a := rgb{}, 0.0
	add := func(color rgb, distance float64) {
		alpha := cover(distance, 0.0018)
		c, a = c.mix(color, alpha), a+(1-a)*alpha
	}
	add(hex(0xfff3df).mix(hex(0xf5b98f), clamp((0.02-x)*9)), polygon(x, y, 0.006, -0.205, 0.004, -0.022, -0.075, -0.026))
	add(hex(0xe2504a).mix(hex(0xf08a5c), clamp(x*9)), polygon(x, y, 0.013, -0.175, 0.013, -0.024, 0.072, -0.024))
	add(hex(0x3a2740), capsule(x, y, 0.009, -0.215, 0.009, -0.01, 0.0016, 0.0024))
	add(hex(0x5a2a34).mix(hex(0xf6ead8), cover(math.Abs(y+0.009)-0.004, 0.002)),
		polygon(x, y, -0.085, -0.014, 0.09, -0.014, 0.062, 0.018, -0.066, 0.018))
	return c, a
}

// gulls draws birds that cross the sky. It returns the fraction of the point that they cover.
func gulls(x, y, t, aspect float64) float64 {
	if y > 0.32 {
		return 0
	}
	a := 0.0
	for i := range 4 {
		k := float64(i)
		gx := (0.30+0.055*k+0.028*t)*aspect + 0.03*math.Sin(k*2.3)
		gy := 0.20 + 0.035*math.Sin(k*1.9+1) + 0.012*math.Sin(t*1.3+k)
		dx, dy := math.Abs(x-gx), y-gy
		if dx > 0.05 || math.Abs(dy) > 0.04 {
			continue
		}
		size := 0.017 + 0.004*math.Sin(k*5)
		flap := 0.9 * math.Sin(t*(7+k*0.6)+k*2)
		wing := -size * (0.35 + 0.45*flap) * math.Sin(clamp(dx/size)*2.2)
		a = max(a, cover(math.Abs(dy-wing)-0.0024*(1-0.75*clamp(dx/size)), 0.0016)*cover(dx-size, 0.002))
	}
	return a
}
