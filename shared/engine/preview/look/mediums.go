package look

import "cutroom/shared/engine/preview/look/oklab"

func mediums() []entry {
	return []entry{
		{"watercolor", true, watercolor}, {"oil painting", true, oilPainting}, {"impressionist", true, impressionist},
		{"pencil sketch", true, pencilSketch}, {"charcoal", true, charcoal}, {"anime", true, anime},
		{"comic", true, comic}, {"pixel art", true, pixelArt},
	}
}

func watercolor() []Op {
	return []Op{
		Warp{Across: wobble(9, 0), Down: wobble(9, 1), Reach: 0.012}, Flatten{0.009}, Smooth{0.014, 0.08},
		grade(saturate(1.3), light(0.045), contrast(0.95, 0.6), fade(0.2, 0.985)),
		Lines{Width: 0.014, From: 0.74, To: 0.985, Ink: [3]float64{0.36, 0.32, 0.44}},
		add(pigment(0.13)),
		add(paper(0.085)),
		screen(frame(1, 0.055), 0.985, 0.975, 0.955),
	}
}

func oilPainting() []Op {
	loaded := &brush{bristle: 0.004, length: 0.034, swirl: 1.0}
	return []Op{
		loaded.dragged(0.012),
		Flatten{0.010},
		Clarity{0.025, 0.6},
		grade(saturate(1.3), contrast(1.18, 0.55), warm(0.012)),
		add(loaded.ridges(0.24)),
		add(canvas(0.05)),
		multiply(vignette(0.3, 0.55)),
	}
}

func impressionist() []Op {
	short := &brush{bristle: 0.006, length: 0.055, swirl: 1.4}
	return []Op{
		short.dragged(0.011),
		Flatten{0.006},
		Clarity{0.02, 0.5},
		grade(attract(258, 70, 0.25, 1.3), contrast(1.15, 0.55), splitTone(268, 0.04, 88, 0.02)),
		Lines{Width: 0.016, From: 0.62, To: 0.95, Ink: [3]float64{0.10, 0.12, 0.34}},
		add(short.ridges(0.27)),
	}
}

func pencilSketch() []Op {
	graphite := NewLUT(mono, fade(0.42, 1.02))
	return []Op{
		Warp{Across: wobble(13, 0), Down: wobble(13, 1), Reach: 0.005},
		Smooth{0.006, 0.07},
		Lines{Width: 0.010, From: 0.74, To: 0.985, Ink: [3]float64{0.1, 0.1, 0.1}, Fill: graphite},
		add(hatching(0.30)),
		grade(steep(0.36, 0.80, 0.16, 0.985), splitTone(270, 0.006, 90, 0.008)),
		add(paper(0.11)),
	}
}

// steep stretches the lightness range [from, to] to [low, high].
func steep(from, to, low, high float64) Adjust {
	return func(c oklab.Color) oklab.Color {
		c.L = low + (high-low)*smoothstep(from, to, c.L)
		return c
	}
}

func charcoal() []Op {
	return []Op{
		Flatten{0.006},
		Lines{
			Width: 0.022, From: 0.55, To: 0.97, Ink: [3]float64{0.04, 0.04, 0.04},
			Fill: NewLUT(mono, contrast(1.3, 0.5), fade(0.18, 0.9)),
		},
		add(hatching(0.16)),
		add(paper(0.20)),
		grade(steep(0.1, 0.86, 0.07, 0.93), splitTone(60, 0.008, 80, 0.014)),
		multiply(vignette(0.25, 0.5)),
	}
}

func anime() []Op {
	return []Op{
		Smooth{0.016, 0.11},
		Lines{Width: 0.009, From: 0.80, To: 0.965, Ink: [3]float64{0.10, 0.06, 0.18}},
		grade(levels(7, 0.3), fade(0.02, 0.95), saturate(1.35), splitTone(285, 0.03, 95, 0.012)),
		Bloom{0.035, 0.8, 0.3},
	}
}

func comic() []Op {
	return []Op{
		Smooth{0.012, 0.12},
		Lines{Width: 0.010, From: 0.87, To: 0.975, Ink: [3]float64{0.02, 0.02, 0.05}},
		grade(fade(0, 0.96), contrast(1.25, 0.5), saturate(1.5), levels(6, 0.15)),
		Layer{Texture: dots(1, 0.018, 30), Mode: Multiply, Tint: [3]float64{0.78, 0.76, 0.82}},
	}
}

func pixelArt() []Op {
	const block = 1.0 / 96
	quantize := NewLUT(saturate(1.2), contrast(1.15, 0.5), palette(1.6, pixelPalette()...))
	quantize.Nearest = true
	return []Op{Pixelate{block}, add(bayer(0.03, block)), Grade{quantize}}
}

// pixelPalette returns colors in ramps, like the palette of a game console: grays, skin, and bright colors.
func pixelPalette() []oklab.Color {
	var colors []oklab.Color
	for _, v := range []uint32{
		0x0d0b12, 0x26242e, 0x45434d, 0x66646e, 0x898790, 0xacaab0, 0xcdcbcd, 0xe9e7e4, 0xffffff,
		0x2e1d18, 0x57382a, 0x86583e, 0xb67f5c, 0xdba98a, 0xf3cfb6, 0x6b5a2e, 0x9c8a4c, 0xd0bd84, 0x94877c, 0xb8aa9c, 0xd9cbbe, 0xa9bccb,
		0x3b1430, 0x7a1f3d, 0xb8343f, 0xe2603f, 0xf59a4a, 0xfbcf68, 0x4b2d73, 0x7b3f8f, 0xb0559a, 0xe88aa8,
		0x17324d, 0x1f5a7a, 0x2f8fa8, 0x6fc3d0, 0xbfe3ee, 0x12203f, 0x2b4a9b, 0x4d7fe0, 0x93bdf5,
		0x153b2b, 0x2b6b3a, 0x5c9c3f, 0xa4cc55,
	} {
		colors = append(colors, hex(v))
	}
	return colors
}
