package scene

import (
	"math"
	"slices"
	"sort"

	"cutroom/shared/engine/preview/look/noise"
)

const valley = 0.78

// stand is a row of firs on the same ground, from left to right, and the haze in front of them.
type stand struct {
	base, haze, tallest float64
	firs                []fir
}

type fir struct{ x, height float64 }

type massif struct {
	rock, clouds *noise.Field
	day          air
	snowy        bool
	snow, leaves rgb
	sunAt, phase float64
	stands       []stand // the farthest row is first
}

// mountains shows ranges one behind another, with fog in the valleys, snow above and firs, or a forest, in front.
func mountains(seed uint32, light string, snowy, wooded bool) Scene {
	source := noise.NewSource(uint64(seed), 21)
	m := massif{
		rock: noise.NewField(uint64(seed), 22), clouds: noise.NewField(uint64(seed), 23), day: airs()[light], snowy: snowy,
		sunAt: source.Between(0.2, 0.8), phase: source.Between(0, 90),
	}
	rows := [][3]float64{{1.02, 0.17, 0.1}} // the ground, the height and the haze of each row
	if wooded {
		rows = [][3]float64{{0.7, 0.28, 0.6}, {0.84, 0.45, 0.3}, {1.08, 0.8, 0.06}}
	}
	for _, row := range rows {
		s := stand{base: row[0], haze: row[2], tallest: 1.2 * row[1]}
		for x := -0.3; x < 4; x += row[1] * source.Between(0.15, 0.42) {
			s.firs = append(s.firs, fir{x, row[1] * source.Between(0.6, 1.2)})
		}
		m.stands = append(m.stands, s)
	}
	m.snow = hex(0xf4f7fc).mix(m.day.cloud, 0.4)
	m.leaves = hex(0x2f6b34).mix(m.day.ink, 0.3)
	if m.day.night {
		m.snow, m.leaves = hex(0x8fa6d0), m.leaves.times(0.35)
	}
	return func(t, aspect float64) shader { return m.at(t, aspect).color }
}

type mountainView struct {
	*massif
	t      float64
	sky    heaven
	ranges [5]profile
}

func (m *massif) at(t, aspect float64) *mountainView {
	v := &mountainView{massif: m, t: t}
	v.sky = heaven{
		air: m.day, clouds: m.clouds, stars: m.rock, horizon: valley, sunX: m.sunAt * aspect, sunY: 0.22, sun: 0.05,
		cover: 0.02, drift: t * 0.045,
	}
	for i := range v.ranges {
		k := float64(i) / float64(len(v.ranges)-1)
		frequency, height, base := 1.0+1.6*k, 0.40-0.20*k, 0.54+0.30*k
		// The viewpoint moves, so near ranges pass faster.
		eye := t * 0.02 * (0.15 + k)
		v.ranges[i] = newProfile(aspect, func(x float64) float64 {
			at := (x+eye)*frequency + m.phase + 31*k
			ridge := 1 - math.Abs(m.rock.Fractal(at, 11*k, 5))*1.7
			return base - height*(0.25+0.75*ridge*(0.75+0.25*m.rock.At(at*0.6, 50)))
		})
	}
	return v
}

// grow paints a row of firs, and the haze in front of them.
func (v *mountainView) grow(c *canvas, s stand, x, y float64) {
	c.add(v.day.haze, 0.75*s.haze*smooth(s.base-0.16, s.base, y))
	x += v.t * 0.03 * s.base
	reach := 0.25 * (y - s.base + s.tallest)
	first := sort.Search(len(s.firs), func(i int) bool { return s.firs[i].x >= x-reach })
	for i := first; i < len(s.firs) && s.firs[i].x <= x+reach && c.open > 0; i++ {
		f := s.firs[i]
		down, side := y-s.base+f.height, math.Abs(x-f.x)
		if side > 0.25*down {
			continue
		}
		down, side = down/f.height, side/f.height
		// Each layer of branches widens on its way down, and hangs lower at its ends.
		_, branch := math.Modf(down*11 - side*6 + 2 + 0.2*v.rock.At((x-f.x)*60/f.height, down*20+float64(i)))
		half := 0.2 * down * (0.65 + 0.35*branch + 0.2*v.rock.At(y*90, float64(i)*3.7))
		covered := cover((side-half)*f.height, 0.0022)
		lit := clamp(0.25 + 0.5*branch + 0.3*v.rock.At(x*160, y*160) + 0.15*math.Sin(float64(i)*2.4))
		c.add(v.day.ink.times(0.5).mix(v.leaves, lit).mix(v.day.haze, s.haze), covered)
	}
}

// color paints from front to back: the firs, the ranges from the nearest on, and the sky.
func (v *mountainView) color(x, y float64) rgb {
	c := canvas{open: 1}
	for _, s := range slices.Backward(v.stands) {
		v.grow(&c, s, x, y)
	}
	return c.land(v.ranges[:], x, y, func(i int) rgb { return v.slope(i, x, y) },
		func() rgb { return v.sky.color(x, min(y, valley), 1) })
}

// slope returns the color of a range: rock, snow on it, and fog below.
func (v *mountainView) slope(i int, x, y float64) rgb {
	k := float64(i) / float64(len(v.ranges)-1)
	below := y - v.ranges[i].at(x)
	body := v.day.haze.mix(v.day.ink, 0.30+0.55*k).mix(v.day.at(0.6), 0.30*(1-k))
	// Slopes that face the sun are lighter.
	slope := (v.ranges[i].at(x+0.006) - v.ranges[i].at(x-0.006)) / 0.012
	if x < v.sky.sunX {
		slope = -slope
	}
	grain := v.rock.Fractal(x*22+9*k, y*30, 2)
	// Ribs run down from the ridge, each in its own direction.
	rib := v.rock.Fractal((x+0.5*below*slope)*8+17*k, y*8, 4)
	slope = slope*math.Exp(-below*22) + rib
	body = body.mix(v.day.glow, 0.16*clamp(slope+0.6*grain))
	if v.snowy || i < 2 {
		line := 0.10 - 0.05*k + 0.05*grain
		if v.snowy {
			line += 0.12
		}
		body = body.mix(v.snow, (0.85-0.3*k)*smooth(line, line-0.05, below)*clamp(0.75+0.5*slope))
	}
	fog := smooth(0.03, 0.22, below) * (0.62 - 0.3*k) * (0.75 + 0.5*v.clouds.At(x*2.4+v.t*0.1+k*9, y*6))
	return body.mix(v.day.haze, clamp(fog))
}
