package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// Bay is the sea before layered hills: a sailing boat that crosses, gulls, and
// water that carries all of it upside down; a person who looks on from a jetty
// if somebody is asked for.
func Bay(seed uint32, light string, somebody bool) Scene {
	source := noise.NewSource(uint64(seed), 1)
	waves, clouds := noise.NewField(uint64(seed), 2), noise.NewField(uint64(seed), 3)
	day := airs()[light]
	const horizon = 0.58
	sunAt, start := source.Between(0.68, 0.80), source.Between(0.05, 0.12)
	if !somebody {
		sunAt, start = source.Between(0.25, 0.8), source.Between(0.1, 0.5)
	}
	phase := source.Between(0, 60)
	sea := day.at(0.8).mix(hex(0x2b3f78), 0.55)
	var slopes [3]rgb
	for i := range slopes {
		slopes[i] = day.haze.mix(day.ink, [3]float64{0.42, 0.66, 0.9}[i]).mix(day.at(0.5), 0.25)
	}
	return Scene{"bay", func(t, aspect float64) shader {
		var hills []profile
		for _, hill := range []struct{ frequency, phase, base, height, from, to float64 }{
			{1.6, 11, 0.012, 0.17, 9, 0}, {2.3, 47, 0.004, 0.12, 0.98, 0.3}, {3.1, 83, -0.004, 0.155, 0.5, 0.02},
		} {
			hills = append(hills, newProfile(aspect, func(x float64) float64 {
				rise := hill.base + hill.height*(0.5+0.5*clouds.Fractal(x*hill.frequency+hill.phase+phase, hill.phase, 5))
				return horizon + 0.004 - (rise+0.004)*smooth(hill.from, hill.to, x/aspect)
			}))
		}
		sky := heaven{
			air: day, clouds: clouds, stars: waves, horizon: horizon, sunX: sunAt * aspect, sunY: horizon - 0.20, sun: 0.058,
			drift: t * 0.035,
		}
		boat := sailingBoat{
			x: (start + 0.05*t) * aspect, y: horizon + 0.055 + 0.0035*math.Sin(t*2.1), tilt: 0.03 * math.Sin(t*1.7),
		}
		// above is what stands over the water, from the nearest hill back.
		above := func(x, y, disc float64) rgb {
			var c rgb
			open := 1.0
			for i := len(hills) - 1; i >= 0 && open > 0; i-- {
				a := cover(hills[i].at(x)-y, 0.0022)
				if a == 0 {
					continue
				}
				near := 0.42 * clamp(1-math.Abs(x-sky.sunX)*1.3) * smooth(horizon-0.2, horizon, y)
				c = c.plus(slopes[i].mix(day.haze, near).times(open * a))
				open *= 1 - a
			}
			if open > 0 {
				c = c.plus(sky.color(x, y, disc).times(open))
			}
			return c
		}
		return func(x, y float64) rgb {
			var c rgb
			if y < horizon {
				c = above(x, y, 1).mix(day.ink, gulls(x, y, t, aspect))
			} else {
				depth := (y - horizon) / (1 - horizon)
				far := 1 / (depth + 0.07)
				swell := waves.Fractal((x-aspect/2)*far*0.9+9, far*2.4+t*0.9, 3)
				chop := waves.Fractal((x-aspect/2)*far*3.1+t*0.5, far*7.5+t*1.9, 2)
				slope := 0.65*swell + 0.5*chop
				mirrorY := 2*horizon - y + slope*0.10*(0.25+depth)
				c = above(x+slope*0.012, min(mirrorY, horizon-0.001), 0)
				c = c.mix(sea, 0.22+0.4*depth)
				// The sun's path: facets that tilt towards it glitter.
				path := math.Exp(-math.Abs(x-sky.sunX)*(9-5*depth)) * (1 - 0.65*depth)
				c = c.plus(day.glow.times(path * (0.22 + 1.3*smooth(0.18, 0.55, slope))))
				c = c.plus(day.cloud.times(0.10 * smooth(0.3, 0.6, chop)))
				mirrored, a := boat.color(x+slope*0.02, 2*(horizon+0.072)-y+slope*0.02)
				c = c.mix(mirrored.mix(sea, 0.3), 0.62*a*smooth(horizon+0.04, horizon+0.08, y))
			}
			sail, a := boat.color(x, y)
			c = c.mix(sail, a)
			if !somebody {
				return c
			}
			wood, a := jetty(x, y, aspect/2, 0.84)
			c = c.mix(wood, a)
			person, a := walker(x, y, t, aspect/2)
			return c.mix(person, a)
		}
	}}
}

// sailingBoat is a boat at a place of the picture.
type sailingBoat struct{ x, y, tilt float64 }

// color returns the boat's colour and how much of the point it covers.
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

// gulls are birds that cross the sky; it returns how much of the point they
// cover.
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
