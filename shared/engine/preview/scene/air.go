package scene

import (
	"math"

	"cutroom/shared/engine/preview/look/noise"
)

// air describes a landscape's light: the sky from the horizon up, and matching colors.
type air struct {
	sky []stop
	// These are the light around the sun, the color of distant objects, and the clouds' lit and dark sides.
	glow, haze, cloud, shade rgb
	// ink is the color of near objects against the light.
	ink rgb
	// night is true if there are stars. overcast is true if clouds hide the sun.
	night, overcast bool
}

func (a air) at(up float64) rgb { return gradient(a.sky, up) }

func airs() map[string]air {
	return map[string]air{
		"sunset": {
			sky: []stop{
				{0, hex(0xffdf9e)}, {0.14, hex(0xffb36b)}, {0.34, hex(0xf07a6a)},
				{0.58, hex(0xa65a8c)}, {0.8, hex(0x54498a)}, {1, hex(0x2b3168)},
			},
			glow: hex(0xffb066), haze: hex(0xffb48a), cloud: hex(0xffb48a), shade: hex(0x8f5b92), ink: hex(0x3a2a4e),
		},
		"dawn": {
			sky: []stop{
				{0, hex(0xfff0cf)}, {0.2, hex(0xffd3b0)}, {0.45, hex(0xf2b5c4)},
				{0.7, hex(0xa9b4dc)}, {1, hex(0x6d8ec4)},
			},
			glow: hex(0xffd9a0), haze: hex(0xffe0cc), cloud: hex(0xfff0e6), shade: hex(0xc7a3bf), ink: hex(0x3d4468),
		},
		"day": {
			sky:  []stop{{0, hex(0xe6f4f7)}, {0.2, hex(0xb5dff0)}, {0.5, hex(0x74b8e6)}, {1, hex(0x2f74c0)}},
			glow: hex(0xfff3cc), haze: hex(0xdcecf2), cloud: hex(0xffffff), shade: hex(0xa9c4da), ink: hex(0x22435c),
		},
		"storm": {
			sky:  []stop{{0, hex(0xd9d6c4)}, {0.25, hex(0x9aa6a8)}, {0.6, hex(0x5a6a78)}, {1, hex(0x333f50)}},
			glow: hex(0xe8e2c0), haze: hex(0xaab4b4), cloud: hex(0xb9c0c0), shade: hex(0x46525f), ink: hex(0x1e2833),
			overcast: true,
		},
		"night": {
			sky:  []stop{{0, hex(0x35588c)}, {0.25, hex(0x1f3a72)}, {0.6, hex(0x142452)}, {1, hex(0x0a1230)}},
			glow: hex(0x9fc0f0), haze: hex(0x2f4f80), cloud: hex(0x4a689c), shade: hex(0x18264e), ink: hex(0x070d22),
			night: true,
		},
		"magic": {
			sky: []stop{
				{0, hex(0xffe7d6)}, {0.2, hex(0xf7a8c8)}, {0.45, hex(0xb57be0)}, {0.75, hex(0x5a58c8)}, {1, hex(0x26307c)},
			},
			glow: hex(0xffd0e8), haze: hex(0xf2b8d8), cloud: hex(0xffd8e6), shade: hex(0x8868c4), ink: hex(0x2c1f5c),
		},
	}
}

// heaven is a sky with a sun or moon and clouds.
type heaven struct {
	air
	clouds, stars *noise.Field
	// These are the horizon, and the sun's position and radius, as fractions of the height.
	horizon, sunX, sunY, sun float64
	// cover is the cloudiness, about -0.2 to 0.3. drift is how far the clouds have moved.
	cover, drift float64
}

// color returns the sky's color above the horizon. disc is 1 if the sun itself is visible, otherwise 0.
func (h heaven) color(x, y, disc float64) rgb {
	up := (h.horizon - y) / h.horizon
	c := h.at(up)
	if h.night {
		u, v := x*70, y*70
		star := h.stars.At(math.Floor(u)*3.7+0.5, math.Floor(v)*5.3+0.5)
		if star > 0.9 {
			d := math.Hypot(u-math.Floor(u)-0.5, v-math.Floor(v)-0.5)
			c = c.plus(hex(0xdfe8ff).times((star - 0.9) * 9 * smooth(0.22, 0.02, d) * smooth(0, 0.3, up)))
		}
	}
	d := math.Hypot(x-h.sunX, (y-h.sunY)*1.05)
	strength := 0.55
	if h.night {
		strength = 0.32
	}
	c = c.plus(h.glow.times(strength * math.Exp(-d*5.5))).plus(hex(0xfff0c0).times(0.7 * strength * math.Exp(-d*18)))
	density := h.clouds.Fractal(x*2.1+h.drift, y*9+3, 4) + h.cover
	if veil := smooth(0.06, 0.55, density) * smooth(0.02, 0.3, up); veil > 0 {
		lit := h.shade.mix(h.cloud, clamp(1.15-d*1.1))
		c = c.mix(lit, 0.75*veil)
	}
	if h.overcast {
		return c
	}
	return c.mix(hex(0xfff6d8), disc*cover(d-h.sun, 0.003))
}

// profile is the outline of a range of hills along x.
type profile struct {
	tops []float64
	step float64
}

// newProfile computes an outline for x from -profileMargin to width+profileMargin. The function top returns the
// outline's y at x.
func newProfile(width float64, top func(x float64) float64) profile {
	const points = 1024
	p := profile{make([]float64, points+1), (width + 2*profileMargin) / points}
	for i := range p.tops {
		p.tops[i] = top(float64(i)*p.step - profileMargin)
	}
	return p
}

// Outlines extend this far beyond the picture's sides, for reflections and moving viewpoints.
const profileMargin = 0.6

func (p profile) at(x float64) float64 {
	v := max(0, min(float64(len(p.tops)-2), (x+profileMargin)/p.step))
	i := int(v)
	return p.tops[i] + (p.tops[i+1]-p.tops[i])*(v-float64(i))
}
