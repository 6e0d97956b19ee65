package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

const (
	valley = 0.78
	// rangeCount is the number of ranges, one behind another.
	rangeCount = 5
)

// fir is a tree in the foreground: its position, and the size of its outline.
type fir struct{ x, height, width float64 }

type massif struct {
	rock, clouds *noise.Field
	day          air
	snowy        bool
	snow         rgb
	sunAt, phase float64
	forest       [64]fir
}

// mountains shows ranges one behind another, with fog in the valleys, snow above and firs, or a forest, in front.
func mountains(seed uint32, light string, snowy, wooded bool) Scene {
	source := noise.NewSource(uint64(seed), 21)
	m := massif{
		rock: noise.NewField(uint64(seed), 22), clouds: noise.NewField(uint64(seed), 23), day: airs()[light], snowy: snowy,
		sunAt: source.Between(0.2, 0.8), phase: source.Between(0, 90),
	}
	tall := map[bool]float64{false: 1, true: 2.5}[wooded]
	for i := range m.forest {
		x := float64(i)/56 + source.Between(-0.004, 0.01)
		m.forest[i] = fir{x, source.Between(0.10, 0.24) * tall, source.Between(0.16, 0.24)}
	}
	m.snow = hex(0xf4f7fc).mix(m.day.cloud, 0.4)
	if m.day.night {
		m.snow = hex(0x8fa6d0)
	}
	return Scene{"mountains", func(t, aspect float64) shader { return m.at(t, aspect).color }}
}

type mountainView struct {
	*massif
	t      float64
	sky    heaven
	ranges [rangeCount]profile
	firs   profile
}

func (m *massif) at(t, aspect float64) *mountainView {
	v := &mountainView{massif: m, t: t, firs: m.treetops(t, aspect)}
	v.sky = heaven{
		air: m.day, clouds: m.clouds, stars: m.rock, horizon: valley, sunX: m.sunAt * aspect, sunY: 0.22, sun: 0.05,
		cover: 0.02, drift: t * 0.045,
	}
	for i := range v.ranges {
		k := float64(i) / (rangeCount - 1)
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

func (m *massif) treetops(t, aspect float64) profile {
	eye := t * 0.03
	return newProfile(aspect, func(x float64) float64 {
		top := 1.02
		for _, fir := range m.forest {
			d := math.Abs(x+eye-fir.x*aspect*1.12) / (fir.width * fir.height)
			if d < 1 {
				// The outline zigzags on its way down, like branches.
				y := 1.0 - fir.height*(1-d)
				top = min(top, y+0.006*math.Sin(y*420)*d)
			}
		}
		return top - 0.012*m.rock.At((x+eye)*60, 3)
	})
}

// color paints from front to back: the firs, the ranges from the nearest on, and the sky.
func (v *mountainView) color(x, y float64) rgb {
	if cover(v.firs.at(x)-y, 0.003) == 1 {
		return v.day.ink.mix(v.day.haze, 0.10*smooth(1, 0.8, y))
	}
	var c rgb
	open := 1.0
	for i := rangeCount - 1; i >= 0 && open > 0; i-- {
		a := cover(v.ranges[i].at(x)-y, 0.0022)
		if a == 0 {
			continue
		}
		c = c.plus(v.slope(i, x, y).times(open * a))
		open *= 1 - a
	}
	if open > 0 {
		c = c.plus(v.sky.color(x, min(y, valley), 1).times(open))
	}
	return c.mix(v.day.ink, cover(v.firs.at(x)-y, 0.003))
}

// slope returns the color of a range: rock, snow on it, and fog below.
func (v *mountainView) slope(i int, x, y float64) rgb {
	k := float64(i) / (rangeCount - 1)
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
