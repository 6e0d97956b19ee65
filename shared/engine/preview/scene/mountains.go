package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// mountains are ranges behind each other with fog in the valleys, snow above,
// and firs in front.
func mountains(seed uint32, light string, snowy bool) Scene {
	source := noise.NewSource(uint64(seed), 21)
	rock, clouds := noise.NewField(uint64(seed), 22), noise.NewField(uint64(seed), 23)
	day := airs()[light]
	const horizon, count = 0.78, 5
	sunAt, phase := source.Between(0.2, 0.8), source.Between(0, 90)
	var forest [64]struct{ x, height, width float64 }
	for i := range forest {
		forest[i].x = float64(i)/56 + source.Between(-0.004, 0.01)
		forest[i].height, forest[i].width = source.Between(0.10, 0.24), source.Between(0.16, 0.24)
	}
	white := hex(0xf4f7fc).mix(day.cloud, 0.4)
	if day.night {
		white = hex(0x8fa6d0)
	}
	return Scene{"mountains", func(t, aspect float64) shader {
		sky := heaven{
			air: day, clouds: clouds, stars: rock, horizon: horizon, sunX: sunAt * aspect, sunY: 0.22, sun: 0.05, cover: 0.02,
			drift: t * 0.045,
		}
		var ranges [count]profile
		for i := range count {
			k := float64(i) / (count - 1)
			frequency, height, base := 1.0+1.6*k, 0.40-0.20*k, 0.54+0.30*k
			// The eye moves: what is near passes faster.
			eye := t * 0.02 * (0.15 + k)
			ranges[i] = newProfile(aspect, func(x float64) float64 {
				v := (x+eye)*frequency + phase + 31*k
				ridge := 1 - math.Abs(rock.Fractal(v, 11*k, 5))*1.7
				return base - height*(0.25+0.75*ridge*(0.75+0.25*rock.At(v*0.6, 50)))
			})
		}
		eye := t * 0.03
		firs := newProfile(aspect, func(x float64) float64 {
			top := 1.02
			for _, fir := range forest {
				d := math.Abs(x+eye-fir.x*aspect*1.12) / (fir.width * fir.height)
				if d < 1 {
					// Branches: the outline steps out and in on its way down.
					y := 1.0 - fir.height*(1-d)
					top = min(top, y+0.006*math.Sin(y*420)*d)
				}
			}
			return top - 0.012*rock.At((x+eye)*60, 3)
		})
		return func(x, y float64) rgb {
			if y > 0.7 {
				if a := cover(firs.at(x)-y, 0.003); a == 1 {
					return day.ink.mix(day.haze, 0.10*smooth(1, 0.8, y))
				}
			}
			var c rgb
			open := 1.0
			for i := count - 1; i >= 0 && open > 0; i-- {
				top := ranges[i].at(x)
				a := cover(top-y, 0.0022)
				if a == 0 {
					continue
				}
				k := float64(i) / (count - 1)
				below := y - top
				body := day.haze.mix(day.ink, 0.30+0.55*k).mix(day.at(0.6), 0.30*(1-k))
				// Faces towards the sun are lighter: the slope tells.
				slope := (ranges[i].at(x+0.006) - ranges[i].at(x-0.006)) / 0.012
				if x < sky.sunX {
					slope = -slope
				}
				grain := rock.Fractal(x*22+9*k, y*30, 2)
				// Ribs run down from the ridge, each in its own direction.
				rib := rock.Fractal((x+0.5*below*slope)*8+17*k, y*8, 4)
				slope = slope*math.Exp(-below*22) + rib
				body = body.mix(day.glow, 0.16*clamp(slope+0.6*grain))
				if snowy || i < 2 {
					line := 0.10 - 0.05*k + 0.05*grain
					if snowy {
						line += 0.12
					}
					body = body.mix(white, (0.85-0.3*k)*smooth(line, line-0.05, below)*clamp(0.75+0.5*slope))
				}
				fog := smooth(0.03, 0.22, below) * (0.62 - 0.3*k) * (0.75 + 0.5*clouds.At(x*2.4+t*0.1+k*9, y*6))
				body = body.mix(day.haze, clamp(fog))
				c = c.plus(body.times(open * a))
				open *= 1 - a
			}
			if open > 0 {
				c = c.plus(sky.color(x, min(y, horizon), 1).times(open))
			}
			return c.mix(day.ink, cover(firs.at(x)-y, 0.003))
		}
	}}
}
