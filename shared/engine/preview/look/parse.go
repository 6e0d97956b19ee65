package look

import (
	"slices"
	"strings"

	"cutroom/shared/engine/preview/look/noise"
)

const (
	// maxMoods and maxModifiers bound how many entries of the lexicon one
	// prompt can combine; more would take time and only muddy the picture.
	maxMoods     = 2
	maxModifiers = 3
)

// request is what a prompt asks for.
type request struct {
	moods     []entry
	medium    *entry
	modifiers []modifier
	// subject is the other words, in order, without fillers.
	subject []string
	// empty is true if there was no word at all.
	empty bool
}

// Parse converts a prompt to a look. Words of the lexicon choose one medium and
// up to two moods; words such as "brighter" or "blue" modify; all other words
// together determine a grade of their own, so that different texts look
// different. An empty prompt means a tasteful enhancement. The seed varies the
// look.
func Parse(prompt string, seed uint32) Look {
	asked := read(prompt)
	switch {
	case asked.empty:
		return Look{Seed: seed, Ops: begin(Variation(seed), enhance())}
	case len(asked.moods) == 0 && asked.medium == nil && len(asked.modifiers) == 0:
		return Look{Seed: seed, Ops: begin(Variation(seed), imagine(asked.subject))}
	}
	return asked.look(seed)
}

// Named returns the look of the words in the lexicon alone, and of one mood at
// most, for pictures that the words have shaped already.
func Named(prompt string, seed uint32) Look {
	asked := read(prompt)
	asked.subject = nil
	asked.moods = asked.moods[:min(1, len(asked.moods))]
	return asked.look(seed)
}

// look returns the look of the request.
func (asked request) look(seed uint32) Look {
	look := Look{Seed: seed}
	start := Variation(seed)
	if len(asked.subject) > 0 {
		start = start.Then(accent(asked.subject))
	}
	for _, mood := range asked.moods {
		look.Names = append(look.Names, mood.name)
		look.Ops = append(look.Ops, mood.ops()...)
	}
	if asked.medium != nil {
		look.Names = append(look.Names, asked.medium.name)
		look.Ops = append(look.Ops, asked.medium.ops()...)
	}
	for _, modifier := range asked.modifiers {
		look.Ops = append(look.Ops, modifier.ops()...)
	}
	look.Ops = fuse(begin(start, look.Ops))
	return look
}

// begin puts a change of colours before the look's first own one, so that both
// are one table. What lies before works on shapes, to which a small change of
// colours does not matter.
func begin(start *LUT, ops []Op) []Op {
	for i, op := range ops {
		switch op := op.(type) {
		case Smooth, Flatten, Pixelate, Clarity, Warp, Fringe:
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
	return append([]Op{Grade{start}}, ops...)
}

// Names returns the name of every look of the lexicon.
func Names() []string {
	var names []string
	for _, e := range lexicon() {
		names = append(names, e.name)
	}
	return names
}

// meaning is what a phrase asks for: a look, or else a modifier.
type meaning struct {
	phrase   []string
	look     *entry
	generic  bool
	modifier *modifier
}

// meanings returns all phrases by their first word.
func meanings() map[string][]meaning {
	all := map[string][]meaning{}
	learn := func(phrases []string, m meaning) {
		for _, phrase := range phrases {
			m.phrase = words(phrase)
			all[m.phrase[0]] = append(all[m.phrase[0]], m)
		}
	}
	for _, e := range lexicon() {
		learn(e.phrases, meaning{look: &e})
		learn(e.generic, meaning{look: &e, generic: true})
	}
	for _, c := range modifiers() {
		learn(c.phrases, meaning{modifier: &c})
	}
	return all
}

// read finds what a prompt asks for.
func read(prompt string) request {
	var asked request
	tokens := words(prompt)
	asked.empty = len(tokens) == 0
	known := meanings()
	var generic *entry
	negated := false
	for at := 0; at < len(tokens); {
		var found meaning
		for _, m := range known[tokens[at]] {
			if len(m.phrase) > len(found.phrase) && startsWith(tokens[at:], m.phrase) {
				found = m
			}
		}
		switch {
		case len(found.phrase) == 0:
			if token := tokens[at]; !fillers[token] && !negations[token] {
				asked.subject = append(asked.subject, token)
			}
		case negated:
		case found.generic:
			if generic == nil {
				generic = found.look
			}
		case found.look != nil:
			asked.add(found.look)
		case len(asked.modifiers) < maxModifiers:
			asked.modifiers = append(asked.modifiers, *found.modifier)
		}
		at += max(1, len(found.phrase))
		negated = negations[tokens[at-1]]
	}
	if generic != nil && (generic.medium || len(asked.moods) == 0) {
		asked.add(generic)
	}
	if len(asked.subject) == 0 && asked.medium == nil && len(asked.moods) == 0 && len(asked.modifiers) == 0 {
		asked.subject = tokens
	}
	return asked
}

// add adds a look, unless there is one of its kind already or there are enough.
func (asked *request) add(e *entry) {
	switch {
	case e.medium:
		if asked.medium == nil {
			asked.medium = e
		}
	case len(asked.moods) < maxMoods && !slices.ContainsFunc(asked.moods, func(m entry) bool { return m.name == e.name }):
		asked.moods = append(asked.moods, *e)
	}
}

// fuse merges grades that follow each other into one table.
func fuse(ops []Op) []Op {
	var fused []Op
	for _, op := range ops {
		if next, ok := op.(Grade); ok && len(fused) > 0 {
			if last, ok := fused[len(fused)-1].(Grade); ok && !next.LUT.Nearest {
				fused[len(fused)-1] = Grade{last.LUT.Then(next.LUT)}
				continue
			}
		}
		fused = append(fused, op)
	}
	return fused
}

// numberOf hashes words to a number that changes with every letter (FNV-1a).
func numberOf(tokens []string) uint64 {
	hash := uint64(14695981039346656037)
	for _, b := range []byte(strings.Join(tokens, " ")) {
		hash = (hash ^ uint64(b)) * 1099511628211
	}
	return noise.Mix(hash)
}
