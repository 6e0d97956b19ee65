package look

import "cutroom/shared/engine/preview/look/noise"

// Variation returns the small change that a seed makes to every look: a step in
// colour and light, in a direction of its own.
func Variation(seed uint32) *LUT {
	source := noise.NewSource(uint64(seed), 100)
	return NewLUT(
		tint(source.Float()*360, 0.016),
		light(source.Between(-0.012, 0.012)),
		contrast(source.Between(0.97, 1.04), 0.5),
	)
}

// enhance is the look of an empty prompt: what a careful editor would do.
func enhance() []Op {
	return []Op{
		Clarity{0.06, 0.45},
		Clarity{0.004, 0.5},
		grade(contrast(1.14, 0.5), light(0.035), vibrance(1.5), splitTone(235, 0.018, 75, 0.022)),
		Bloom{0.04, 0.72, 0.45},
		multiply(vignette(0.30, 0.45)),
	}
}

// Reference returns the look of a request with a reference image and no words:
// it is painted anew, and the engine applies the image's colours.
func Reference(seed uint32) Look {
	touch := brush{bristle: 0.0035, length: 0.03, swirl: 1.1}
	return Look{Seed: seed, Ops: []Op{
		touch.dragged(0.008),
		Flatten{0.006},
		Clarity{0.03, 0.5},
		Grade{Variation(seed)},
		add(touch.ridges(0.14)),
	}}
}

// imagine is the look of words that the lexicon does not know: tones, colours
// and a finish drawn from the text.
func imagine(subject []string) []Op {
	source := noise.NewSource(numberOf(subject))
	tone := [][]Adjust{
		{light(0.11), contrast(0.9, 0.6)},
		{light(-0.12), contrast(1.15, 0.4)},
		{contrast(1.35, 0.5)},
		{fade(0.24, 0.94), contrast(1.05, 0.5)},
		{light(0.06), contrast(1.2, 0.6)},
		{light(-0.06), fade(0.12, 0.98)},
	}[source.Intn(6)]
	shadow := source.Float() * 360
	lights := shadow + source.Between(90, 270)
	look := append([]Adjust{saturate(source.Between(0.45, 1.1)), rotate(source.Between(-35, 35))}, tone...)
	look = append(look, splitTone(shadow, source.Between(0.07, 0.11), lights, source.Between(0.06, 0.10)))
	finish := [][]Op{
		{Bloom{0.045, 0.5, 0.9}},
		{add(grain(0.06, 0.003)).jumping(12), multiply(vignette(0.6, 0.35))},
		{add(canvas(0.14)), multiply(vignette(0.3, 0.5))},
		{Clarity{0.05, 0.7}},
		{screen(leak(0.5), 1, 0.6, 0.4), Bloom{0.04, 0.65, 0.6}},
		{add(paper(0.16))},
	}[source.Intn(6)]
	first := [][]Op{
		{Smooth{0.010, 0.09}},
		{Flatten{0.006}},
		{Clarity{0.03, 0.5}},
		{Smooth{0.012, 0.11}, Lines{Width: 0.008, From: 0.74, To: 0.94, Ink: [3]float64{0.1, 0.1, 0.15}}},
	}[source.Intn(4)]
	return append(append(first, grade(look...)), finish...)
}

// accent is what the words beside a look add to it: a change of the light and
// the hues that the look then works with.
func accent(subject []string) *LUT {
	source := noise.NewSource(numberOf(subject), 1)
	brightness := source.Between(0.035, 0.075)
	if source.Intn(2) == 0 {
		brightness = -brightness
	}
	return NewLUT(
		rotate(source.Between(-28, 28)),
		light(brightness),
		contrast(source.Between(0.85, 1.2), source.Between(0.4, 0.6)),
		tint(source.Float()*360, 0.05),
	)
}
