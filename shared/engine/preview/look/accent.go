package look

import "cutroom/shared/engine/preview/look/noise"

// Variation returns the small change that a seed makes to every look: a tint in a random direction, and slightly
// different light and contrast.
func Variation(seed uint32) *LUT {
	source := noise.NewSource(uint64(seed), 100)
	return NewLUT(
		tint(source.Float()*360, 0.016),
		light(source.Between(-0.012, 0.012)),
		contrast(source.Between(0.97, 1.04), 0.5),
	)
}

// enhance returns corrections that suit any picture, as a careful editor makes them.
func enhance() []Op {
	return []Op{
		Clarity{0.06, 0.45},
		Clarity{0.004, 0.5},
		grade(contrast(1.14, 0.5), light(0.035), vibrance(1.5), splitTone(235, 0.018, 75, 0.022)),
		Bloom{0.04, 0.72, 0.45},
		multiply(vignette(0.30, 0.45)),
	}
}

// Reference returns the look for a request with a reference image but no words. It turns the picture into a painting,
// and the engine applies the image's colors.
func Reference(seed uint32) Look {
	touch := &brush{bristle: 0.0035, length: 0.03, swirl: 1.1}
	return Look{Seed: seed, Ops: []Op{
		touch.dragged(0.008),
		Flatten{0.006},
		Clarity{0.03, 0.5},
		Grade{Variation(seed)},
		add(touch.ridges(0.14)),
	}}
}
