package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
	"cutroom/shared/engine/preview/look/oklab"
)

func aurora(seed uint32) Scene {
	source := noise.NewSource(uint64(seed), 41)
	curtains, ground := noise.NewField(uint64(seed), 42), noise.NewField(uint64(seed), 43)
	day := airs()["night"]
	const horizon = 0.72
	hue := source.Between(140, 175)
	lower, upper := fromHue(0.86, 0.20, hue), fromHue(0.60, 0.20, hue+source.Between(110, 190))
	phase := source.Between(0, 90)
	return Scene{"aurora", func(t, aspect float64) shader {
		stars := heaven{air: day, clouds: curtains, stars: ground, horizon: horizon, sunX: -9, sunY: -9, cover: -1}
		hills := newProfile(aspect, func(x float64) float64 {
			return horizon - 0.01 - 0.14*(0.5+0.5*ground.Fractal(x*1.7+phase, 3, 5))
		})
		var folds [3]profile
		for i := range folds {
			k := float64(i)
			folds[i] = newProfile(aspect, func(x float64) float64 {
				return 0.50 - 0.09*k + 0.16*curtains.Fractal(x*0.9+t*0.05+k*21+phase, t*0.07+k*5, 3)
			})
		}
		glow := func(x, y float64) rgb {
			c := stars.color(x, y, 0)
			for i := range folds {
				above := folds[i].at(x) - y
				if above < -0.03 || above > 0.5 {
					continue
				}
				k := float64(i)
				rays := 0.55 + 0.45*curtains.Fractal(x*16+t*0.25+k*9, t*0.5+k*3, 2)
				body := smooth(-0.02, 0.015, above) * math.Exp(-above*(6.5-k))
				bright := body * rays * (0.95 - 0.2*k) * (0.6 + 0.6*curtains.At(x*1.4+k*30-t*0.12, 60))
				c = c.plus(lower.mix(upper, smooth(0.03, 0.26, above)).times(max(0, bright)))
			}
			return c
		}
		above := func(x, y float64) rgb {
			a := cover(hills.at(x)-y, 0.0022)
			land := hex(0x060b18).mix(lower, 0.05)
			if a == 1 {
				return land
			}
			return glow(x, y).mix(land, a)
		}
		return func(x, y float64) rgb {
			if y < horizon {
				return above(x, y)
			}
			depth := (y - horizon) / (1 - horizon)
			wave := ground.Fractal(x*5/(0.15+depth), y*70+t*0.9, 2)
			c := above(x+0.006*wave, 2*horizon-y+wave*0.035*(0.2+depth))
			return c.mix(hex(0x050a1c), 0.25+0.25*depth)
		}
	}}
}

func fromHue(lightness, chroma, hue float64) rgb {
	r, g, b := oklab.FromHue(lightness, chroma, hue).SRGB()
	return rgb{clamp(r), clamp(g), clamp(b)}
}
