package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

const (
	desertEdge = 0.46
	// duneCount is the number of dunes, one behind another.
	duneCount = 6
)

type desert struct {
	sand, clouds *noise.Field
	day          air
	sunAt, phase float64
	bright, dark rgb
}

// dunes is a desert: ridges with one lit side, ripples, and sand blowing over the crests.
func dunes(seed uint32, light string) Scene {
	source := noise.NewSource(uint64(seed), 11)
	d := desert{
		sand: noise.NewField(uint64(seed), 12), clouds: noise.NewField(uint64(seed), 13), day: airs()[light],
		sunAt: source.Between(0.2, 0.8), phase: source.Between(0, 90), bright: hex(0xf4b46a), dark: hex(0x8a4a34),
	}
	if d.day.night {
		d.bright, d.dark = hex(0x7d8fc0), hex(0x1c2748)
	}
	d.bright, d.dark = d.bright.mix(d.day.cloud, 0.18), d.dark.mix(d.day.ink, 0.25)
	return Scene{"dunes", func(t, aspect float64) shader { return d.at(t, aspect).color }}
}

// desertView is a desert at a given time, for a picture with a given aspect ratio.
type desertView struct {
	*desert
	t   float64
	sky heaven
	// feet holds the distance from a dune's crest down to the end of its shadow.
	crests, feet [duneCount]profile
}

func (d *desert) at(t, aspect float64) *desertView {
	e := &desertView{desert: d, t: t}
	e.sky = heaven{
		air: d.day, clouds: d.clouds, stars: d.sand, horizon: desertEdge, sunX: d.sunAt * aspect,
		sunY: desertEdge - 0.22, sun: 0.05, cover: -0.1, drift: t * 0.03,
	}
	for i := range duneCount {
		k := float64(i) / (duneCount - 1)
		base := desertEdge + 0.02 + 0.52*k*k
		height, frequency := 0.03+0.16*k, 2.6-1.9*k
		move := t * 0.012 * (0.3 + k)
		e.crests[i] = newProfile(aspect, func(x float64) float64 {
			return base - height*(0.5+0.5*d.sand.Fractal((x+move)*frequency+d.phase+19*k, 7*k, 3))
		})
		// The shadow's edge winds below the crest.
		e.feet[i] = newProfile(aspect, func(x float64) float64 {
			return (0.05 + 0.22*k) * (0.55 + 0.75*d.sand.Fractal((x+move)*frequency*1.7+d.phase+3, 40+9*k, 3))
		})
	}
	return e
}

func (e *desertView) color(x, y float64) rgb {
	for i := duneCount - 1; i >= 0; i-- {
		below := y - e.crests[i].at(x)
		if y < e.crests[i].at(x)-0.004 {
			continue
		}
		c := e.slope(i, x, y)
		a := cover(-below, 0.0022)
		if a == 1 {
			return c
		}
		back := e.sky.color(x, min(y, desertEdge), 1)
		if i > 0 {
			back = e.bright.mix(e.day.haze, 0.5)
		}
		return back.mix(c, a)
	}
	return e.sky.color(x, y, 1)
}

// slope returns the color of a dune, in the light or in its own shadow.
func (e *desertView) slope(i int, x, y float64) rgb {
	k := float64(i) / (duneCount - 1)
	below, foot := y-e.crests[i].at(x), e.feet[i].at(x)
	shadow := smooth(0.004, -0.004, below-foot) * smooth(0, 0.012, foot)
	ripple := math.Sin((x*0.9+y*2.4+0.08*e.sand.At(x*6, y*9))*(190-110*k)) * (0.02 + 0.05*k)
	lit := e.bright.mix(e.day.glow, 0.25*math.Exp(-math.Abs(x-e.sky.sunX)*1.5))
	lit = lit.times(0.92 + ripple + 0.10*e.sand.At(x*3+40*k, y*5))
	c := lit.mix(e.dark.times(1+ripple), 0.85*shadow)
	c = c.mix(e.day.haze, 0.62*(1-k)*(1-k))
	// Blown sand glows along the crest.
	dust := math.Exp(-below*60) * smooth(-0.1, 0.6, e.sand.At(x*5+e.t*1.6, 30*k+e.t*0.4))
	return c.plus(e.day.glow.times(0.30 * dust))
}
