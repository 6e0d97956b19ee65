package look

func moods() []entry {
	return []entry{
		{"autumn", false, autumn}, {"spring", false, spring}, {"winter", false, winter},
		{"underwater", false, underwater}, {"golden hour", false, goldenHour}, {"sunset", false, sunset},
		{"night", false, night}, {"rain", false, rainy}, {"fog", false, fog}, {"fire", false, fire},
		{"cyberpunk neon", false, cyberpunk}, {"dreamy", false, dreamy}, {"horror", false, horror},
		{"cinematic", false, cinematic}, {"film noir", false, filmNoir}, {"sepia", false, sepia},
		{"old movie", false, oldMovie}, {"vintage film", false, vintageFilm}, {"vhs", false, vhs},
		{"enhanced", false, enhance},
	}
}

func autumn() []Op {
	return []Op{
		grade(shift(140, 55, -78, 1.25), shift(255, 50, 0, 0.7), warm(0.04), splitTone(30, 0.03, 75, 0.035),
			contrast(1.06, 0.5), saturate(1.15)),
		Layer{Texture: inverse(petals(1, 0.02, 24)), Mode: Multiply, Tint: [3]float64{0.82, 0.36, 0.08}}.drifting(0.10, 0.16),
		Layer{Texture: inverse(petals(1, 0.034, 7)), Mode: Multiply, Tint: [3]float64{0.72, 0.20, 0.05}}.drifting(0.17, 0.27),
		Bloom{0.04, 0.7, 0.5},
	}
}

func spring() []Op {
	return []Op{
		grade(light(0.09), contrast(0.92, 0.6), shift(140, 50, -6, 1.25), tint(350, 0.018),
			splitTone(330, 0.02, 350, 0.03), vibrance(1.35)),
		screen(petals(0.95, 0.017, 34), 1, 0.72, 0.82).drifting(0.08, 0.13),
		screen(petals(0.9, 0.03, 8), 1, 0.62, 0.76).drifting(0.15, 0.23),
		Bloom{0.05, 0.66, 0.6},
	}
}

func winter() []Op {
	return []Op{
		grade(saturate(0.5), warm(-0.045), light(0.11), contrast(0.98, 0.55), splitTone(255, 0.03, 235, 0.015)),
		Bloom{0.04, 0.72, 0.5},
		screen(snow(0.8, 0.0038, 220), 1, 1, 1).drifting(0.05, 0.20),
		screen(snow(0.95, 0.0075, 60), 1, 1, 1).drifting(0.09, 0.38),
		screen(frame(0.5, 0.10), 0.9, 0.96, 1),
	}
}

func underwater() []Op {
	return []Op{
		Warp{Across: ripples(5, false), Down: ripples(4, true), Reach: 0.005, Motion: Motion{Down: 0.11}},
		grade(saturate(0.8), shift(50, 70, 0, 0.55), tint(212, 0.075), splitTone(245, 0.05, 195, 0.02),
			contrast(1.06, 0.5), light(-0.03)),
		screen((&cells{perUnit: 5, purpose: 1}).caustics(0.13), 0.55, 0.95, 0.95).drifting(0.05, 0.02).soft(),
		Layer{Texture: vignette(0.75, 0.35), Mode: Multiply, Tint: [3]float64{0, 0.12, 0.25}}.soft(),
		screen(bubbles(0.8, 22), 0.8, 1, 1).drifting(0.01, -0.16),
	}
}

func goldenHour() []Op {
	return []Op{
		grade(warm(0.03), light(0.02), splitTone(320, 0.01, 78, 0.03), contrast(1.05, 0.5), saturate(1.05)),
		Bloom{0.06, 0.66, 0.5},
		screen(leak(0.34), 1, 0.70, 0.30),
	}
}

func sunset() []Op {
	return []Op{
		grade(light(-0.05), contrast(1.1, 0.5), splitTone(300, 0.075, 45, 0.085), saturate(1.15)),
		Bloom{0.06, 0.6, 0.7},
		screen(leak(0.5), 1, 0.45, 0.30),
	}
}

func night() []Op {
	return []Op{
		grade(saturate(0.6), light(-0.14), fade(0, 0.72), contrast(1.2, 0.3), tint(262, 0.04), splitTone(268, 0.05, 250, 0.02)),
		Bloom{0.035, 0.45, 0.5},
		Layer{Texture: vignette(0.6, 0.4), Mode: Multiply, Tint: [3]float64{0.02, 0.03, 0.12}},
	}
}

func rainy() []Op {
	return []Op{
		Clarity{0.05, 0.3},
		grade(saturate(0.5), light(-0.075), warm(-0.035), splitTone(245, 0.03, 225, 0.015)),
		screen(mist(0.28), 0.72, 0.80, 0.88).drifting(0.05, 0),
		screen(rain(0.42, 0.09, 420), 0.80, 0.90, 1).drifting(-0.19, 1.55),
		screen(rain(0.6, 0.20, 90), 0.85, 0.93, 1).drifting(-0.29, 2.4),
		multiply(vignette(0.45, 0.4)),
	}
}

func fog() []Op {
	return []Op{
		Smooth{0.008, 0.05},
		grade(saturate(0.5), contrast(0.66, 0.62), light(0.07), warm(-0.012)),
		screen(mist(0.62), 0.90, 0.92, 0.94).drifting(0.06, 0).soft(),
		screen(mist(0.34), 0.88, 0.91, 0.95).drifting(-0.10, 0).soft(),
		Bloom{0.06, 0.7, 0.5},
	}
}

func fire() []Op {
	return []Op{
		grade(light(-0.12), contrast(1.2, 0.42), warm(0.04), gradientMap(0.62,
			colorStop{0, hex(0x0a0204)}, colorStop{0.28, hex(0x3d0608)}, colorStop{0.48, hex(0xa81a06)},
			colorStop{0.66, hex(0xf2600c)}, colorStop{0.83, hex(0xffb52e)}, colorStop{1, hex(0xfff4c4)})),
		multiply(vignette(0.6, 0.35)), multiply(inverse(flames(0.85, 0.44))),
		screen(flames(0.95, 0.42), 0.95, 0.25, 0.02), screen(flames(1, 0.28), 1, 0.68, 0.12),
		Bloom{0.05, 0.6, 0.8},
		screen(embers(0.95, 110), 1, 0.62, 0.2).drifting(0.05, -0.24),
		Warp{Across: ripples(9, false), Reach: 0.0035, Motion: Motion{Down: -0.35}},
	}
}

func cyberpunk() []Op {
	// Lines darken, so they glow if they are drawn on a negative.
	negative := Negative()
	dark := NewLUT(light(-0.08), fade(0, 0.72), attract(345, 215, 0.5, 1.15), splitTone(295, 0.1, 225, 0.05))
	return []Op{
		Smooth{0.006, 0.06},
		Grade{NewLUT(light(0.16)).Then(negative)},
		Lines{
			Width: 0.012, From: 0.80, To: 0.98, Ink: [3]float64{0, 0.9, 0.15}, Fill: negative.Then(dark).Then(negative),
		},
		Grade{negative}, Bloom{0.022, 0.45, 1.5},
		multiply(scanlines(0.16, 1.0/180)),
		screen(leak(0.55), 1, 0.05, 0.6),
		Layer{Texture: vignette(0.75, 0.4), Mode: Multiply, Tint: [3]float64{0.10, 0, 0.18}},
	}
}

func dreamy() []Op {
	return []Op{
		Smooth{0.010, 0.07},
		grade(light(0.07), contrast(0.82, 0.62), saturate(0.95), splitTone(300, 0.035, 10, 0.03), fade(0.14, 1)),
		Bloom{0.05, 0.42, 0.75},
		screen(leak(0.35), 1, 0.72, 0.92).soft(),
		screen(embers(0.8, 70), 1, 0.92, 0.98).drifting(0.02, -0.05),
	}
}

func horror() []Op {
	return []Op{
		Clarity{0.03, 0.9},
		grade(saturate(0.3), light(-0.13), contrast(1.35, 0.38), shift(25, 40, 0, 2.2), splitTone(165, 0.035, 135, 0.02)),
		screen(mist(0.16), 0.55, 0.68, 0.55).drifting(0.03, 0),
		add(grain(0.075, 0.003)).jumping(12),
		multiply(vignette(0.92, 0.2)),
	}
}

func cinematic() []Op {
	return []Op{
		Clarity{0.06, 0.35},
		grade(contrast(1.22, 0.48), attract(58, 215, 0.4, 1.08), splitTone(218, 0.055, 68, 0.045), fade(0.03, 0.97)),
		Bloom{0.04, 0.74, 0.6},
		add(grain(0.035, 0.002)).jumping(12),
		multiply(vignette(0.55, 0.4)),
	}
}

func filmNoir() []Op {
	return []Op{
		Clarity{0.04, 0.5},
		grade(mono, light(-0.045), contrast(1.7, 0.5)),
		Bloom{0.03, 0.76, 0.6},
		add(grain(0.085, 0.0028)).jumping(12),
		multiply(vignette(0.85, 0.3)),
	}
}

func sepia() []Op {
	return []Op{
		grade(mono, contrast(1.05, 0.5), gradientMap(1,
			colorStop{0.05, hex(0x1c1008)}, colorStop{0.4, hex(0x6d4a2c)},
			colorStop{0.7, hex(0xc09a6a)}, colorStop{0.98, hex(0xfbf0d9)})),
		Layer{Texture: vignette(0.35, 0.5), Mode: Multiply, Tint: [3]float64{0.2, 0.1, 0.04}},
	}
}

func oldMovie() []Op {
	return []Op{
		Smooth{0.004, 0.05},
		grade(mono, contrast(1.25, 0.5), fade(0.10, 0.96), splitTone(60, 0.025, 85, 0.03)),
		Bloom{0.03, 0.7, 0.4},
		screen(mist(0.20), 1, 1, 0.95).jumping(8).soft(),
		screen(scratches(0.9), 1, 1, 0.92).jumping(12),
		add(grain(0.07, 0.0022)).jumping(18),
		multiply(vignette(0.85, 0.3)),
	}
}

func vintageFilm() []Op {
	return []Op{
		Smooth{0.004, 0.05},
		grade(saturate(0.72), contrast(0.95, 0.5), warm(0.035), splitTone(205, 0.035, 75, 0.04), fade(0.22, 0.93)),
		Bloom{0.03, 0.7, 0.5},
		screen(leak(0.55), 1, 0.42, 0.16).soft(),
		screen(scratches(0.75), 1, 0.96, 0.86).jumping(9),
		add(grain(0.075, 0.003)).jumping(12),
		multiply(vignette(0.6, 0.4)),
	}
}

func vhs() []Op {
	return []Op{
		Warp{Across: tracking(), Reach: 0.10, Motion: Motion{Hold: 0.1}},
		Fringe{0.007}, Smooth{0.006, 0.12}, Clarity{0.008, 0.7},
		grade(contrast(1.08, 0.5), splitTone(250, 0.015, 150, 0.012), fade(0.09, 0.94)),
		Bloom{0.02, 0.7, 0.5},
		screen(tape(0.75), 0.9, 0.95, 1).jumping(10),
		add(grain(0.05, 0.003)).jumping(12),
		multiply(scanlines(0.30, 1.0/120)),
	}
}
