package look

type entry struct {
	name string
	// medium is true for artistic media, such as paint. Moods, such as weather, are applied first.
	medium bool
	ops    func() []Op
}

func grade(adjustments ...Adjust) Grade { return Grade{NewLUT(adjustments...)} }
func add(t Texture) Layer               { return Layer{Texture: t, Mode: Add} }
func multiply(t Texture) Layer          { return Layer{Texture: t, Mode: Multiply} }
func screen(t Texture, r, g, b float64) Layer {
	return Layer{Texture: t, Mode: Screen, Tint: [3]float64{r, g, b}}
}

func (l Layer) jumping(perSecond float64) Layer {
	l.Motion = Motion{Hold: 1 / perSecond}
	return l
}

// soft marks a layer as having no detail that would be lost at half size.
func (l Layer) soft() Layer {
	l.Soft = true
	return l
}

func (l Layer) drifting(right, down float64) Layer {
	l.Motion = Motion{Right: right, Down: down}
	return l
}

// inverse turns a texture of light into one of shade.
func inverse(t Texture) Texture {
	return func(s *Sheet) {
		t(s)
		for i, v := range s.Values {
			s.Values[i] = 1 - v
		}
	}
}

// lexicon returns every look by name, moods first. If two phrases match, the longer one wins.
func lexicon() []entry { return append(moods(), mediums()...) }
