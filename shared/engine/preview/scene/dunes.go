package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// dunes is a desert: ridges of sand with one side in the light, ripples, and
// sand that the wind carries over the crests.
func dunes(seed uint32, light string) Scene {
	source := noise.NewSource(uint64(seed), 11)
	sand, clouds := noise.NewField(uint64(seed), 12), noise.NewField(uint64(seed), 13)
	day := airs()[light]
	const horizon, count = 0.46, 6
	sunAt, phase := source.Between(0.2, 0.8), source.Between(0, 90)
	bright, dark := hex(0xf4b46a), hex(0x8a4a34)
	if day.night {
		bright, dark = hex(0x7d8fc0), hex(0x1c2748)
	}
	bright, dark = bright.mix(day.cloud, 0.18), dark.mix(day.ink, 0.25)
	return Scene{"dunes", func(t, aspect float64) shader {
		sky := heaven{
			air: day, clouds: clouds, stars: sand, horizon: horizon, sunX: sunAt * aspect, sunY: horizon - 0.22, sun: 0.05,
			cover: -0.1, drift: t * 0.03,
		}
		var crests, feet [count]profile
		for i := range count {
			k := float64(i) / (count - 1)
			base := horizon + 0.02 + 0.52*k*k
			height, frequency := 0.03+0.16*k, 2.6-1.9*k
			move := t * 0.012 * (0.3 + k)
			crests[i] = newProfile(aspect, func(x float64) float64 {
				return base - height*(0.5+0.5*sand.Fractal((x+move)*frequency+phase+19*k, 7*k, 3))
			})
			// The foot of the shadow snakes below the crest.
			feet[i] = newProfile(aspect, func(x float64) float64 {
				return (0.05 + 0.22*k) * (0.55 + 0.75*sand.Fractal((x+move)*frequency*1.7+phase+3, 40+9*k, 3))
			})
		}
		return func(x, y float64) rgb {
			for i := count - 1; i >= 0; i-- {
				top := crests[i].at(x)
				if y < top-0.004 {
					continue
				}
				k := float64(i) / (count - 1)
				below := y - top
				shadow := smooth(0.004, -0.004, below-feet[i].at(x)) * smooth(0, 0.012, feet[i].at(x))
				ripple := math.Sin((x*0.9+y*2.4+0.08*sand.At(x*6, y*9))*(190-110*k)) * (0.02 + 0.05*k)
				lit := bright.mix(
					day.glow, 0.25*math.Exp(-math.Abs(x-sky.sunX)*1.5),
				).times(0.92 + ripple + 0.10*sand.At(x*3+40*k, y*5))
				c := lit.mix(dark.times(1+ripple), 0.85*shadow)
				c = c.mix(day.haze, 0.62*(1-k)*(1-k))
				// Blown sand glows along the crest.
				dust := math.Exp(-below*60) * smooth(-0.1, 0.6, sand.At(x*5+t*1.6, 30*k+t*0.4))
				c = c.plus(day.glow.times(0.30 * dust))
				a := cover(-below, 0.0022)
				if a < 1 {
					back := sky.color(x, min(y, horizon), 1)
					if i > 0 {
						back = bright.mix(day.haze, 0.5)
					}
					return back.mix(c, a)
				}
				return c
			}
			return sky.color(x, y, 1)
		}
	}}
}
