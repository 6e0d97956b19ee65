package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// nebula is deep space: drifting clouds of light, passing stars and a planet.
func nebula(seed uint32) Scene {
	source := noise.NewSource(uint64(seed), 51)
	gas, dust := noise.NewField(uint64(seed), 52), noise.NewField(uint64(seed), 53)
	hue := source.Float() * 360
	warm, cold := fromHue(0.68, 0.20, hue), fromHue(0.50, 0.19, hue+source.Between(100, 200))
	planetX, planetY := source.Between(0.6, 0.85), source.Between(0.3, 0.6)
	radius, phase := source.Between(0.12, 0.22), source.Between(0, 90)
	surface := fromHue(0.62, 0.12, hue+source.Between(20, 80))
	return Scene{"nebula", func(t, aspect float64) shader {
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
	}}
}
