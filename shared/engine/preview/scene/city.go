package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// city is a street of towers at night: lit windows, signs, traffic, and wet
// ground that mirrors it.
func city(seed uint32, light string) Scene {
	source := noise.NewSource(uint64(seed), 31)
	haze, wet := noise.NewField(uint64(seed), 32), noise.NewField(uint64(seed), 33)
	day := airs()["night"]
	low, high := hex(0x8c2f7c), hex(0x1a1240)
	switch light {
	case "sunset", "dawn":
		low, high = hex(0xf0845a), hex(0x2c2458)
	case "day", "magic":
		low, high = hex(0xd868b0), hex(0x35257e)
	}
	const ground = 0.74
	signs := []rgb{hex(0xff3d8b), hex(0x28e0f0), hex(0xffb03a), hex(0x8a5cff), hex(0x4dff9e)}
	type tower struct {
		left, right, top float64
		seed             uint64
	}
	const depths = 3
	var towers [depths][]tower
	for depth := range towers {
		for x := -0.7; x < 3.2; {
			width := source.Between(0.09, 0.2) * (0.6 + 0.45*float64(depth))
			height := source.Between(0.16, 0.5) * (1.15 - 0.15*float64(depth))
			towers[depth] = append(towers[depth], tower{x, x + width, ground - height, source.Uint64()})
			x += width + source.Between(0, 0.05)*(0.4+float64(depth))
		}
	}
	return Scene{"city", func(t, aspect float64) shader {
		sky := func(x, y float64) rgb {
			up := clamp((ground - y) / ground)
			c := low.mix(high, smooth(0, 0.75, up))
			return c.plus(low.times(0.22 * smooth(-0.2, 0.6, haze.Fractal(x*1.6+t*0.03, y*3, 3)) * (1 - up)))
		}
		standing := func(x, y float64) rgb {
			for depth := depths - 1; depth >= 0; depth-- {
				k := float64(depth) / (depths - 1)
				at := x + t*0.025*(0.2+k)
				for _, b := range towers[depth] {
					if at < b.left || at >= b.right || y < b.top {
						continue
					}
					c := day.ink.mix(low, 0.34*(1-k)).mix(low, 0.25*smooth(ground-0.3, ground, y)*(1-0.6*k))
					size := 0.011 + 0.009*k
					u, v := (at-b.left)/size, (y-b.top)/(size*1.3)
					cell := noise.Mix(b.seed ^ uint64(int(u)*977+int(v)*31337))
					inside := u-math.Floor(u) > 0.28 && v-math.Floor(v) > 0.42
					if inside && v > 1.2 && cell&7 < 3 {
						warm := hex(0xffd890).mix(signs[cell>>8%5], 0.22*float64(cell>>5&3))
						flicker := 1.0
						if cell>>12&31 == 0 {
							flicker = 0.6 + 0.4*math.Sin(t*9+float64(cell&63))
						}
						c = c.mix(warm, (0.50+0.40*k)*flicker)
					}
					// A sign runs down some of the fronts.
					if sign := b.seed >> 20 & 3; depth > 0 && sign == 0 {
						middle := (b.left + b.right) / 2
						d := math.Abs(at - middle)
						if y > b.top+0.06 && y < b.top+0.24 {
							color := signs[b.seed>>24%5]
							bars := 0.65 + 0.35*math.Sin((y-b.top)*190-t*4)
							c = c.plus(color.times((cover(d-0.010, 0.003)*bars + 0.5*math.Exp(-d*28)) * 0.9))
						}
					}
					return c
				}
			}
			return sky(x, y)
		}
		traffic := func(x, y float64) rgb {
			var c rgb
			for lane := range 2 {
				at, direction, color := ground+0.035+0.05*float64(lane), 1.0, hex(0xfff0d0)
				if lane == 1 {
					direction, color = -1, hex(0xff3040)
				}
				d := math.Abs(y - at)
				if d > 0.05 {
					continue
				}
				car := math.Mod(x-direction*t*0.5+40, 0.34) - 0.17
				tail := math.Exp(-math.Abs(car) * 14)
				spot := math.Exp(-(car*car*2600 + d*d*9000))
				c = c.plus(color.times(0.45*tail*math.Exp(-d*90) + spot))
			}
			return c
		}
		return func(x, y float64) rgb {
			if y < ground {
				return standing(x, y)
			}
			depth := (y - ground) / (1 - ground)
			ripple := wet.Fractal(x*9/(0.3+depth), y*60+t*1.1, 2)
			c := standing(x+0.012*ripple, ground-(y-ground)*1.5+0.02*ripple*depth)
			c = c.mix(day.ink, 0.35+0.2*depth).plus(low.times(0.06))
			return c.plus(traffic(x, y))
		}
	}}
}
