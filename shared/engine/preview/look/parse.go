package look

import "slices"

const (
	// These limit the moods and modifiers in a prompt. More would take time and muddy the picture.
	maxMoods     = 2
	maxModifiers = 3
)

// wishes are the looks and changes of an area.
type wishes struct {
	maxMoods  int
	moods     []entry
	medium    *entry
	modifiers []modified
	span      Span
	faint     bool
}

type request struct {
	wishes
	Result
	parts   [Person + 1]wishes
	blurred bool // whether bars are blurred
	lone    bool // whether the prompt names nothing but a part of the clip
	alone   bool // whether the prompt says that the rest of the clip is thrown away
}

// modified is a modifier with its strength; 1 is usual.
type modified struct {
	modifier
	by float64
}

// Parse converts a prompt to a look: at most one medium, two moods, and modifiers such as "brighter". If the
// prompt contains none of these, the look has no operations. The seed varies the look.
func Parse(prompt string, seed uint32) Look { return ParseArea(prompt, Whole, seed) }

// ParseArea is like Parse, but for the looks of an area.
func ParseArea(prompt string, area Area, seed uint32) Look {
	read := newRequest(maxMoods).read(prompt, nil)
	asked := read.of(area)
	if !asked.follows() {
		return Look{Seed: seed}
	}
	return asked.look(seed)
}

func newRequest(maxMoods int) request {
	w := wishes{maxMoods: maxMoods}
	return request{wishes: w, parts: [...]wishes{Background: w, Person: w}}
}

func (asked *request) of(area Area) *wishes {
	if area == Whole {
		return &asked.wishes
	}
	return &asked.parts[area]
}

// Scenery is like Parse, but for a picture that was painted from the prompt: it allows at most one
// mood. The seed varies the look even if the prompt requests none.
func Scenery(prompt string, seed uint32) Look {
	asked := newRequest(1).read(prompt, nil)
	return asked.look(seed)
}

func ReadScenery(prompt string, known func(word string) bool) Result {
	return newRequest(1).read(prompt, known).result()
}

func (asked *wishes) follows() bool {
	return asked.medium != nil || len(asked.moods)+len(asked.modifiers) > 0
}

func (asked *wishes) names() []string {
	names := []string{}
	how := map[bool]string{true: " (slight)"}[asked.faint] + asked.span.String()
	for _, mood := range asked.moods {
		names = append(names, mood.name+how)
	}
	if asked.medium != nil {
		names = append(names, asked.medium.name+how)
	}
	for _, m := range asked.modifiers {
		degree := map[bool]string{m.by < 1: " (slight)", m.by > 1: " (strong)"}[true]
		names = append(names, m.name+degree+asked.span.String())
	}
	return names
}

func (asked *wishes) look(seed uint32) Look {
	look := Look{Seed: seed, Span: asked.span, Faint: asked.faint}
	neon := slices.ContainsFunc(asked.moods, func(m entry) bool { return m.name == "cyberpunk neon" })
	for _, mood := range asked.moods {
		look.Names = append(look.Names, mood.name)
		if mood.name != "night" || !neon { // which is dark already
			look.Ops = append(look.Ops, mood.ops()...)
		}
	}
	if asked.medium != nil {
		look.Names = append(look.Names, asked.medium.name)
		look.Ops = append(look.Ops, asked.medium.ops()...)
	}
	for _, modifier := range asked.modifiers {
		look.Ops = append(look.Ops, stronger(modifier.ops(), modifier.by)...)
	}
	exact := slices.Equal(look.Names, []string{"enhanced"}) || len(look.Names) == 0 && len(look.Ops) > 0
	if !exact {
		look.Ops = begin(Variation(seed), look.Ops)
	}
	look.Ops = fuse(look.Ops)
	return look
}

// begin inserts a color change just before the look's first color change, so that both become one table. Operations
// before that point work on shapes, so a small color change does not affect them. If the look has no color change,
// begin inserts it after smoothing, where the picture may be smaller.
func begin(start *LUT, ops []Op) []Op {
	first := 0
	for i, op := range ops {
		switch op := op.(type) {
		case Smooth, Flatten:
			first = i + 1
			continue
		case Pixelate, Clarity, Warp, Fringe:
			continue
		case Grade:
			return slices.Replace(slices.Clone(ops), i, i+1, Op(Grade{start.Then(op.LUT)}))
		case Lines:
			if op.Fill != nil {
				op.Fill = start.Then(op.Fill)
				return slices.Replace(slices.Clone(ops), i, i+1, Op(op))
			}
			continue
		}
		break
	}
	return slices.Insert(slices.Clone(ops), first, Op(Grade{start}))
}

func Names() []string {
	var names []string
	for _, e := range lexicon() {
		names = append(names, e.name)
	}
	return names
}

// add returns false if another medium was already requested or the limit on moods is reached.
func (asked *wishes) add(e *entry) bool {
	switch {
	case e.medium:
		if asked.medium == nil {
			asked.medium = e
		}
		return asked.medium.name == e.name
	case slices.ContainsFunc(asked.moods, func(m entry) bool { return m.name == e.name }):
	case len(asked.moods) < asked.maxMoods:
		asked.moods = append(asked.moods, *e)
	default:
		return false
	}
	return true
}

// modify adds a modifier with a strength. It returns false if there are already maxModifiers other modifiers.
func (asked *wishes) modify(m *modifier, by float64) bool {
	if at := slices.IndexFunc(asked.modifiers, func(known modified) bool { return known.name == m.name }); at >= 0 {
		if by > 1 {
			asked.modifiers[at].by = max(by, asked.modifiers[at].by)
		}
		return true
	}
	if len(asked.modifiers) == maxModifiers {
		return false
	}
	asked.modifiers = append(asked.modifiers, modified{*m, by})
	return true
}

// fuse merges consecutive operations: grades into one table, and layers into one drawn picture.
func fuse(ops []Op) []Op {
	var fused []Op
	for _, op := range ops {
		if len(fused) > 0 {
			last := &fused[len(fused)-1]
			if merged := merge(*last, op); merged != nil {
				*last = merged
				continue
			}
		}
		fused = append(fused, op)
	}
	return fused
}

func merge(first, second Op) Op {
	switch first := first.(type) {
	case Grade:
		if second, ok := second.(Grade); ok && !second.LUT.Nearest {
			return Grade{first.LUT.Then(second.LUT)}
		}
	case Layer:
		if second, ok := second.(Layer); ok {
			return first.with(second)
		}
	}
	return nil
}
