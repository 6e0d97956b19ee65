package look

import "cutroom/shared/engine/preview/look/noise"

// Variation returns the small change that a seed makes to every look: a tint in a random direction, and slightly
// different light and contrast.
func Variation(seed uint32) *LUT {
	source := noise.NewSource(uint64(seed), 100)
	return NewLUT(tint(source.Float()*360, 0.016), light(source.Between(-0.012, 0.012)),
		contrast(source.Between(0.97, 1.04), 0.5))
}

// enhance returns corrections that suit any picture, as a careful editor makes them.
func enhance() []Op {
	return []Op{
		Clarity{0.06, 0.3},
		Clarity{0.004, 0.4},
		grade(contrast(1.24, 0.5), light(0.03), vibrance(1.35), splitTone(240, 0.01, 80, 0.006)),
	}
}

// Reference returns the look for a request with a reference image but no words. It turns the picture into a painting,
// and the engine applies the image's colors.
func Reference(seed uint32) Look {
	touch := &brush{bristle: 0.0035, length: 0.03, swirl: 1.1}
	return Look{Seed: seed, Ops: []Op{
		touch.dragged(0.008),
		Flatten{0.006}, Clarity{0.03, 0.5}, Grade{Variation(seed)},
		add(touch.ridges(0.14)),
	}}
}
