package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
	"cutroom/shared/engine/preview/look/oklab"
)

// flow is ink in water, with endlessly folding colors, for prompts that name no place.
func flow(seed uint32) Scene {
	source := noise.NewSource(uint64(seed), 61)
	first, second := noise.NewField(uint64(seed), 62), noise.NewField(uint64(seed), 63)
	inks := [][]uint32{
		{0x120a3a, 0x5a1f8a, 0xe0457b, 0xff9a62, 0xfff0c8}, {0x04202f, 0x0b5c73, 0x2aa6a0, 0xb6e3b4, 0xfff9de},
		{0x10163a, 0x24479e, 0x4f9de0, 0xb9e4f4, 0xffffff}, {0x2a0a14, 0x8f1d2c, 0xe2572b, 0xf7b545, 0xfff3c9},
		{0x0d2018, 0x1d5c3f, 0x6aa84f, 0xd9cf6a, 0xfdf6d8}, {0x1b1030, 0x4b3fa0, 0x9d6fd6, 0xf2a7d0, 0xfff0f4},
		{0x161a22, 0x3c5068, 0xc07a4b, 0xf0c48a, 0xfdf3e0}, {0x08131f, 0x123f6b, 0xd94f70, 0xf5a6a0, 0xfdf0e2},
	}[source.Intn(8)]
	colors := make([]stop, len(inks))
	for i, ink := range inks {
		colors[i] = stop{float64(i) / float64(len(inks)-1), hex(ink)}
	}
	scale, phase := source.Between(0.8, 1.4), source.Between(0, 90)
	return func(t, aspect float64) shader {
		return func(x, y float64) rgb {
			u, v := (x-aspect/2)*scale+phase, (y-0.5)*scale
			a := first.Fractal(u+0.10*t, v+0.06*t, 2)
			b := first.Fractal(u+30-0.05*t, v+10+0.08*t, 2)
			c := second.Fractal(u*1.2+1.5*a+0.04*t, v*1.2+1.5*b, 3)
			d := second.Fractal(u*1.2+1.3*b+50, v*1.2+1.3*c-0.05*t, 3)
			color := gradient(colors, clamp(0.5+0.62*d+0.22*a))
			// Folds catch the light where the ink bends most.
			fold := math.Abs(c - d)
			color = color.plus(rgb{1, 0.96, 0.9}.times(0.30 * smooth(0.05, 0, math.Abs(fold-0.22))))
			return color.times(0.86 + 0.32*clamp(0.5+c))
		}
	}
}

// nebula is deep space: drifting clouds of light, passing stars and a planet.
func nebula(seed uint32) Scene {
	source := noise.NewSource(uint64(seed), 51)
	gas, dust := noise.NewField(uint64(seed), 52), noise.NewField(uint64(seed), 53)
	hue := source.Float() * 360
	warm, cold := fromHue(0.68, 0.20, hue), fromHue(0.50, 0.19, hue+source.Between(100, 200))
	planetX, planetY := source.Between(0.6, 0.85), source.Between(0.3, 0.6)
	radius, phase := source.Between(0.12, 0.22), source.Between(0, 90)
	surface := fromHue(0.62, 0.12, hue+source.Between(20, 80))
	return func(t, aspect float64) shader {
		zoom := 1 - 0.018*t
		return func(x, y float64) rgb {
			u, v := (x-aspect/2)*zoom, (y-0.5)*zoom
			bendX := gas.Fractal(u*1.3+phase, v*1.3+t*0.02, 2)
			bendY := gas.Fractal(u*1.3+phase+40, v*1.3-t*0.02, 2)
			density := dust.Fractal(u*1.5+1.1*bendX+phase, v*1.5+1.1*bendY, 4)
			glow := math.Pow(clamp(0.5+0.85*density), 2.6)
			c := hex(0x04040e).plus(cold.mix(warm, clamp(0.5+1.3*bendX)).times(1.25 * glow))
			c = c.plus(rgb{1, 0.93, 0.9}.times(0.55 * math.Pow(clamp(density+0.25), 5)))
			for layer := range 2 {
				scale := 26.0 + 30*float64(layer)
				near := 1 - 0.03*t*float64(layer+1)
				a, b := (x-aspect/2)*near*scale+70, (y-0.5)*near*scale+70
				cell := noise.Mix(uint64(int(a)*7919+int(b)*104729+layer) + uint64(seed))
				if cell&15 > 3 {
					continue
				}
				px, py := 0.2+0.6*float64(cell>>8&255)/255, 0.2+0.6*float64(cell>>16&255)/255
				d := math.Hypot(a-math.Floor(a)-px, b-math.Floor(b)-py)
				twinkle := 0.75 + 0.25*math.Sin(t*5+float64(cell&1023))
				size := 0.05 + 0.07*float64(cell>>24&255)/255
				c = c.plus(hex(0xeaf0ff).times(twinkle * (smooth(size, 0, d) + 0.18*math.Exp(-d*11))))
			}
			px, py := x-planetX*aspect+0.012*t, y-planetY
			d := math.Hypot(px, py)
			if d < radius*1.6 {
				height := math.Sqrt(max(0, radius*radius-d*d)) / radius
				light := clamp(0.15 + 0.9*(-px*0.75-py*0.5)/radius + 0.35*height)
				bands := gas.Fractal(py/radius*3+0.3*bendX, px/radius*0.7+t*0.05, 3)
				ball := surface.mix(warm, clamp(0.5+bands)).times(0.08 + 1.1*light)
				c = c.plus(surface.times(0.55 * math.Exp(-max(0, d-radius)*26) * clamp(0.3+light)))
				c = c.mix(ball, cover(d-radius, 0.002))
			}
			return c
		}
	}
}

func aurora(seed uint32) Scene {
	source := noise.NewSource(uint64(seed), 41)
	curtains, ground := noise.NewField(uint64(seed), 42), noise.NewField(uint64(seed), 43)
	day := airs()["night"]
	const horizon = 0.72
	hue := source.Between(140, 175)
	lower, upper := fromHue(0.86, 0.20, hue), fromHue(0.60, 0.20, hue+source.Between(110, 190))
	phase := source.Between(0, 90)
	return func(t, aspect float64) shader {
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
	}
}

func fromHue(lightness, chroma, hue float64) rgb {
	r, g, b := oklab.FromHue(lightness, chroma, hue).SRGB()
	return rgb{clamp(r), clamp(g), clamp(b)}
}
