package look

import (
	"slices"
	"strings"

	"cutroom/shared/engine/preview/scene"
)

// Area is an area of the picture to which a look applies.
type Area int

const (
	Whole Area = iota
	Background
	Person
)

var areaNames = [...]string{Background: "background", Person: "person"}

// These are the names of the background edits. The last three are short for Ground with an argument, or for a change
// of one area.
const (
	Ground      = "background"
	removed     = "remove the background"
	blurred     = "blur the background"
	personColor = "color only on the person"
)

func grounds() []operation {
	var all []operation
	for _, name := range []string{Ground, removed, blurred, personColor} {
		all = append(all, operation{name: name, takes: paint, still: true, label: arguments.ground})
	}
	return all
}

// ground names the new background.
func (a arguments) ground() string {
	switch {
	case a.removed && a.color == "":
		return "background removed"
	case a.color != "":
		return a.color + " background"
	case a.scene != "":
		return "background: " + strings.Join(scene.Read(a.scene).Understood, ", ")
	}
	return "background of the reference image"
}

// areas returns the area that each instruction is about. It adds the background edits. It turns the words for these
// edits and for areas into fillers.
func (asked *request) areas(prompt string, split [][]part) []Area {
	found := make([]Area, len(split))
	for i, instruction := range split {
		at := max(slices.IndexFunc(instruction, func(p part) bool { return p.means.edit != nil && p.means.edit.isGround() }),
			slices.IndexFunc(instruction, func(p part) bool { return p.means.edit != nil && p.means.edit.name == removed }))
		last := i > 0 && i+1 == len(split) && asked.grounded()
		switch {
		case at >= 0:
			found[i] = asked.ground(prompt, instruction, at)
		case in("exceptions", instruction[0].first.text) && i > 0 && hasPerson(instruction):
			found[i-1] = Background
		case excepts(instruction):
			found[i] = Background
			drop(instruction, isPersonWord)
		case isColored(instruction):
			drop(instruction, func(part) bool { return true })
		case last && instruction[0].class != negation && slices.ContainsFunc(instruction, func(p part) bool { return p.whole }):
			asked.recolor(instruction) // "remove the background and make it white"
		case isPerson(instruction):
			found[i] = Person
			drop(instruction, isPersonWord)
		}
	}
	return found
}

func (o *operation) isGround() bool {
	return slices.Contains([]string{Ground, removed, blurred, personColor}, o.name)
}

func (asked *request) grounded() bool {
	_, found := FindGround(asked.edits)
	return found
}

func hasPerson(instruction []part) bool {
	return slices.ContainsFunc(instruction, isPersonWord)
}

func isPersonWord(p part) bool { return in("persons", p.first.text) }

// isOther reports whether a part is neither about a person nor a filler.
func isOther(p part) bool { return p.class != filler && !isPersonWord(p) }

// excepts reports whether an instruction ends like "everything but the person".
func excepts(instruction []part) bool {
	at := slices.IndexFunc(instruction, func(p part) bool { return p.first.text == "but" })
	return at > 0 && hasPerson(instruction[at:]) &&
		!slices.ContainsFunc(instruction[at+1:], isOther)
}

// isColored reports whether an instruction is like "the person in color".
func isColored(instruction []part) bool {
	return hasPerson(instruction) && instruction[len(instruction)-1].first.text == "color" &&
		!slices.ContainsFunc(instruction, isOther)
}

// isPerson reports whether an instruction is only about the person: "anime only on the person",
// "make the man a watercolor".
func isPerson(instruction []part) bool {
	if instruction[0].class == negation || !hasPerson(instruction) || hasEdit(instruction) ||
		!slices.ContainsFunc(instruction, func(p part) bool { return p.means.look != nil || p.means.modifier != nil }) {
		return false
	}
	only, before := false, false // before means that a word for a person precedes
	turned := instruction[0].class == turning
	for _, p := range instruction {
		switch {
		case in("persons", p.first.text):
			before = true
		case in("onlys", p.first.text):
			only = true
		case p.class == content:
			return false
		case !before && len(p.means.phrase) > 0:
			turned = false
		}
	}
	return only || turned
}

// drop turns parts of an instruction into fillers if the given function selects them.
func drop(instruction []part, which func(part) bool) {
	for i, p := range instruction {
		if which(p) {
			instruction[i].class, instruction[i].means = filler, meaning{}
		}
	}
}

// recolor gives the background the color that an instruction names.
func (asked *request) recolor(instruction []part) {
	for i := range asked.edits {
		for at, p := range instruction {
			if m := p.means.modifier; m != nil && m.isColor() && asked.edits[i].isGround() {
				asked.edits[i].args.color = m.name
				instruction[at].class, instruction[at].means = filler, meaning{}
			}
		}
	}
}

// ground applies an instruction that contains a word for the background, and returns the area that it is about.
func (asked *request) ground(prompt string, instruction []part, at int) Area {
	p := &instruction[at]
	name := p.means.edit.name
	e := Edit{operation: p.means.edit, Phrase: prompt[p.first.from:p.last.to]}
	known := func(p part) bool { return p.class != content || isPersonWord(p) || in("references", p.first.text) }
	others := slices.ContainsFunc(instruction, func(p part) bool { return !known(p) })
	// The function `nothing` treats the word for the background as an unknown word.
	nothing := func() Area {
		p.class, p.means = content, meaning{}
		return Whole
	}
	add := func() Area {
		drop(instruction, func(other part) bool { return other.first.from != p.first.from && known(other) })
		if !asked.grounded() {
			asked.edits = append(asked.edits, e)
		}
		return Whole
	}
	change := func(modifier string) Area {
		drop(instruction, func(other part) bool { return known(other) && len(other.means.phrase) == 0 })
		for _, m := range learned().meanings[words(modifier)[0]] {
			if m.modifier != nil && m.modifier.name == modifier {
				p.means = m
			}
		}
		return Background
	}
	before := at - 1
	for before >= 0 && instruction[before].class == filler && !in("insides", instruction[before].first.text) {
		before--
	}
	inside := before >= 0 && in("insides", instruction[before].first.text)
	color := slices.IndexFunc(instruction, func(p part) bool { return p.means.modifier != nil && p.means.modifier.isColor() })
	changes := slices.ContainsFunc(instruction, func(p part) bool {
		return p.means.look != nil || p.means.modifier != nil && !p.means.modifier.isColor()
	})
	switch {
	case at+1 < len(instruction) && in("afterGround", instruction[at+1].first.text):
		return nothing()
	case name == blurred:
		return change("blur")
	case name == personColor:
		return change("grayscale")
	case name == removed:
		if e.args.removed = true; strings.HasPrefix(p.first.text, "green") || p.first.text == "chroma" {
			e.args.color = "green"
		}
		return add()
	case instruction[0].class == negation:
		rest := slices.ContainsFunc(instruction, func(p part) bool { return p.class == content || p.class == turning })
		if !in("lacks", instruction[0].first.text) || rest {
			return Whole
		}
		instruction[0].class = filler
		e.args.removed = true
		return add()
	case inside && others:
		return nothing()
	case removes(instruction, at):
		e.args.removed = true
		return add()
	case changes && asked.painted(&e, prompt, instruction, at) == "":
		if others {
			return nothing()
		}
		drop(instruction, func(other part) bool { return other.first.from == p.first.from || isPersonWord(other) })
		return Background
	case e.args.scene != "" || asked.painted(&e, prompt, instruction, at) != "":
		background := scene.Read(e.args.scene)
		drop(instruction, func(p part) bool {
			return background.Shows(strings.ToLower(prompt[p.first.from:p.last.to]))
		})
		return add()
	case others:
		return nothing()
	case color >= 0:
		e.args.color = instruction[color].means.modifier.name
		return add()
	case slices.ContainsFunc(instruction, func(p part) bool { return in("references", p.first.text) }):
		return add()
	}
	return nothing()
}

// removes reports whether the word next to "background" asks to remove the background.
func removes(instruction []part, at int) bool {
	for _, step := range []int{-1, 1} {
		for i := at + step; i >= 0 && i < len(instruction); i += step {
			if p := instruction[i]; p.class == thing || p.first.text == "transparent" {
				return true
			} else if p.class != filler {
				break
			}
		}
	}
	return false
}

// painted sets the edit's scene if an instruction names one: the words after "background" or, if there are none, the
// word before it.
func (asked *request) painted(e *Edit, prompt string, instruction []part, at int) string {
	names := func(p part) bool {
		return p.means.look == nil && scene.Place(prompt[p.first.from:p.last.to]) != "" // a look such as "snowy"
	}
	switch {
	case slices.ContainsFunc(instruction[at+1:], names):
		e.args.scene = prompt[instruction[at].last.to:instruction[len(instruction)-1].last.to]
	default:
		for i := at - 1; i >= 0; i-- { // "a beach at sunset as the background"
			p := instruction[i]
			if names(p) {
				e.args.scene = prompt[p.first.from:instruction[at].first.from]
			} else if p.class == filler && p.first.text != "in" || p.means.look != nil {
				continue
			}
			break
		}
	}
	return e.args.scene
}
