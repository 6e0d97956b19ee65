package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

const (
	// ground is the y of the street's edge.
	ground = 0.74
	// depths is the number of rows of towers, one behind another.
	depths = 3
)

// A tower's seed determines its windows and its sign.
type tower struct {
	left, right, top float64
	seed             uint64
}

type street struct {
	haze, wet *noise.Field
	day       air
	low, high rgb
	signs     []rgb
	// The farthest row is first.
	towers [depths][]tower
}

// city is a street between towers at night: lit windows, signs, traffic, and wet ground that reflects them.
func city(seed uint32, light string) Scene {
	source := noise.NewSource(uint64(seed), 31)
	s := street{
		haze: noise.NewField(uint64(seed), 32), wet: noise.NewField(uint64(seed), 33),
		day: airs()["night"], low: hex(0x8c2f7c), high: hex(0x1a1240),
		signs: []rgb{hex(0xff3d8b), hex(0x28e0f0), hex(0xffb03a), hex(0x8a5cff), hex(0x4dff9e)},
	}
	switch light {
	case "sunset", "dawn":
		s.low, s.high = hex(0xf0845a), hex(0x2c2458)
	case "day", "magic":
		s.low, s.high = hex(0xd868b0), hex(0x35257e)
	}
	for depth := range s.towers {
		for x := -0.7; x < 3.2; {
			width := source.Between(0.09, 0.2) * (0.6 + 0.45*float64(depth))
			height := source.Between(0.16, 0.5) * (1.15 - 0.15*float64(depth))
			s.towers[depth] = append(s.towers[depth], tower{x, x + width, ground - height, source.Uint64()})
			x += width + source.Between(0, 0.05)*(0.4+float64(depth))
		}
	}
	return func(t, _ float64) shader {
		return func(x, y float64) rgb {
			if y < ground {
				return s.skyline(t, x, y)
			}
			return s.pavement(t, x, y)
		}
	}
}

// pavement returns the color of the wet ground, with the skyline's reflection and the traffic.
func (s *street) pavement(t, x, y float64) rgb {
	depth := (y - ground) / (1 - ground)
	ripple := s.wet.Fractal(x*9/(0.3+depth), y*60+t*1.1, 2)
	c := s.skyline(t, x+0.012*ripple, ground-(y-ground)*1.5+0.02*ripple*depth)
	c = c.mix(s.day.ink, 0.35+0.2*depth).plus(s.low.times(0.06))
	return c.plus(traffic(t, x, y))
}

func (s *street) skyline(t, x, y float64) rgb {
	for depth := depths - 1; depth >= 0; depth-- {
		k := float64(depth) / (depths - 1)
		at := x + t*0.025*(0.2+k)
		for _, b := range s.towers[depth] {
			if at < b.left || at >= b.right || y < b.top {
				continue
			}
			c := s.front(b, t, k, at, y)
			if depth > 0 && b.seed>>20&3 == 0 {
				c = c.plus(s.sign(b, t, at, y))
			}
			return c
		}
	}
	return s.sky(t, x, y)
}

func (s *street) sky(t, x, y float64) rgb {
	up := clamp((ground - y) / ground)
	c := s.low.mix(s.high, smooth(0, 0.75, up))
	return c.plus(s.low.times(0.22 * smooth(-0.2, 0.6, s.haze.Fractal(x*1.6+t*0.03, y*3, 3)) * (1 - up)))
}

func (s *street) front(b tower, t, k, x, y float64) rgb {
	c := s.day.ink.mix(s.low, 0.34*(1-k)).mix(s.low, 0.25*smooth(ground-0.3, ground, y)*(1-0.6*k))
	size := 0.011 + 0.009*k
	u, v := (x-b.left)/size, (y-b.top)/(size*1.3)
	cell := noise.Mix(b.seed ^ uint64(int(u)*977+int(v)*31337))
	inside := u-math.Floor(u) > 0.28 && v-math.Floor(v) > 0.42
	if !inside || v <= 1.2 || cell&7 >= 3 {
		return c
	}
	warm := hex(0xffd890).mix(s.signs[cell>>8%5], 0.22*float64(cell>>5&3))
	flicker := 1.0
	if cell>>12&31 == 0 {
		flicker = 0.6 + 0.4*math.Sin(t*9+float64(cell&63))
	}
	return c.mix(warm, (0.50+0.40*k)*flicker)
}

func (s *street) sign(b tower, t, x, y float64) rgb {
	if y <= b.top+0.06 || y >= b.top+0.24 {
		return rgb{}
	}
	d := math.Abs(x - (b.left+b.right)/2)
	bars := 0.65 + 0.35*math.Sin((y-b.top)*190-t*4)
	return s.signs[b.seed>>24%5].times((cover(d-0.010, 0.003)*bars + 0.5*math.Exp(-d*28)) * 0.9)
}

func traffic(t, x, y float64) rgb {
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
