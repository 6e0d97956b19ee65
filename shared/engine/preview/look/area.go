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
		for k, p := range instruction {
			if p.means.edit != nil && (p.means.edit.name == Ground || p.first.text == "black") && slices.ContainsFunc(instruction[:k], part.writes) {
				instruction[k].class, instruction[k].means, instruction[k].first.text = content, meaning{}, "box"
			}
		}
		if area := sparedBy(instruction); area != Whole {
			asked.spare(found, split, i, area)
		}
	}
	for i, instruction := range split {
		if found[i] != Whole || sparedBy(instruction) != Whole {
			continue
		}
		at := max(slices.IndexFunc(instruction, func(p part) bool { return p.means.edit != nil && p.means.edit.isGround() }),
			slices.IndexFunc(instruction, func(p part) bool { return p.means.edit != nil && p.means.edit.name == removed }))
		last := i > 0 && i+1 == len(split) && asked.grounded()
		switch {
		case i > 0 && in("onlys", instruction[0].first.text) && !slices.ContainsFunc(instruction, func(p part) bool { return isOther(p) && areaOf(p) == Whole }):
			found[i-1] = about(instruction) // "black and white, only the background"
			drop(instruction, func(part) bool { return true })
		case at >= 0:
			found[i] = asked.ground(prompt, instruction, at)
		case asked.placed(prompt, instruction):
		case last && instruction[0].class != negation && slices.ContainsFunc(instruction, func(p part) bool {
			return p.whole || p.class == placing && scene.Place(prompt[p.last.to:]) != ""
		}):
			asked.recolor(prompt, instruction) // "remove the background and make it white" or "and put a beach instead"
		case isPerson(instruction), i > 0 && found[i-1] == Background && about(instruction) == Person && !slices.ContainsFunc(instruction, func(p part) bool {
			return p.class == content && !isPersonWord(p)
		}):
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

func hasPerson(instruction []part) bool { return slices.ContainsFunc(instruction, isPersonWord) }
func isPersonWord(p part) bool          { return in("persons", p.first.text) }

// isOther reports whether a part is neither about a person nor a filler.
func isOther(p part) bool { return p.class != filler && !isPersonWord(p) }

// areaOf returns the area that a word names, or Whole.
func areaOf(p part) Area {
	switch {
	case isPersonWord(p):
		return Person
	case p.means.edit != nil && p.means.edit.name == Ground:
		return Background
	}
	return Whole
}

// about returns the area that the words before the next joiner name first, or Whole.
func about(parts []part) Area {
	for _, p := range parts {
		switch {
		case p.class == joiner:
			return Whole
		case areaOf(p) != Whole:
			return areaOf(p)
		case p.means.edit != nil && p.means.edit.isGround():
			return Background
		}
	}
	return Whole
}

// spare finds the words that exclude an area, such as "everything but me", "don't touch the background" and "the
// background unchanged".
func spare(all []part) {
	for i, p := range all {
		area, before, after := areaOf(p), i-1, i+1
		if area == Whole {
			continue
		}
		for before >= 0 && all[before].class == filler && !all[before].whole && !in("leaves", all[before].first.text) {
			before--
		}
		for after < len(all)-1 && all[after].class == filler && !in("unchanged", all[after].first.text) {
			after++
		}
		last := i+1 == len(all) || after == len(all)-1 && all[after].class == filler || all[after].first.clause != p.first.clause
		same := func(at int) bool { return at >= 0 && at < len(all) && all[at].last.clause == p.first.clause }
		switch {
		case same(before) && (in("exceptions", all[before].first.text) || before > 0 && (last || all[before-1].whole) && in("buts", all[before].first.text)):
			all[before].class, all[i].class, all[i].means, all[i].spared = filler, filler, meaning{}, area
		case same(before) && in("leaves", all[before].first.text) && !(same(after) && all[after].class == thing) && !has(segmentAt(all, i), "becomings"): // not "lass … weg" or "lass mich jung aussehen"
			all[before].class = negation
		case same(after) && in("unchanged", all[after].first.text):
			all[i].class, all[i].means, all[i].spared = negation, meaning{}, area
		}
	}
}

// sparedBy returns the area that an instruction excludes, or Whole.
func sparedBy(instruction []part) (area Area) {
	if isColored(instruction) {
		return Person
	}
	kept := instruction[0].class == negation && (!in("lacks", instruction[0].first.text) || len(instruction) > 1 &&
		(instruction[1].class == turning || in("changing", instruction[1].first.text))) // "without changing the background"
	for i, p := range instruction {
		switch {
		case p.spared != Whole:
			return p.spared
		case kept && i > 0 && (!in("keeps", instruction[0].first.text) && (p.means.look != nil || p.means.modifier != nil) || p.class == content && areaOf(p) == Whole && !in("changing", p.first.text)):
			return Whole // "don't make the background red"
		case kept:
			area = max(area, areaOf(p))
		}
	}
	return area
}

// spare applies instructions to the rest of the picture if the instruction with the given index excludes an area. It
// changes `found`, which has the areas of the instructions.
func (asked *request) spare(found []Area, split [][]part, at int, area Area) {
	rest, instruction := Background+Person-area, split[at]
	changes := func(instruction []part) bool {
		return instruction[0].class != negation && slices.ContainsFunc(instruction, func(p part) bool {
			return p.means.look != nil || p.means.modifier != nil
		})
	}
	inColor := strings.HasPrefix(instruction[len(instruction)-1].first.text, "colo")
	switch {
	case instruction[0].class == negation, isColored(instruction):
		for i := range split {
			if changes(split[i]) && !slices.ContainsFunc(split[i], func(p part) bool { return areaOf(p) == area || areaOf(p) == Background }) {
				found[i] = rest
				drop(split[i], isPersonWord)
			}
		}
		drop(instruction, func(p part) bool { return instruction[0].class != negation })
	case changes(instruction):
		found[at] = rest
	case area == Person && instruction[0].class == thing:
		asked.edits = append(asked.edits, Edit{operation: meant(Ground).edit, args: arguments{removed: true}})
		drop(instruction, func(part) bool { return true })
	case inColor && at == 0:
		asked.of(area).modify(meant("grayscale").modifier, 1)
	case at > 0 && changes(split[at-1]):
		found[at-1] = rest
	case at+1 < len(split) && changes(split[at+1]):
		found[at+1] = rest
	}
}

// meant returns the meaning with the given name.
func meant(name string) meaning {
	all := learned().meanings[words(name)[0]]
	return all[slices.IndexFunc(all, func(m meaning) bool { return m.name() == name })]
}

// placed adds a background edit if an instruction puts people into a scene, such as "put her on a beach".
func (asked *request) placed(prompt string, instruction []part) bool {
	at := slices.IndexFunc(instruction, func(p part) bool { return in("insides", p.first.text) })
	if at < 1 || !hasPerson(instruction[:at]) || asked.grounded() || slices.ContainsFunc(instruction[:at], func(p part) bool {
		return isOther(p) && p.class != placing
	}) {
		return false
	}
	e := Edit{operation: meant(Ground).edit, Phrase: prompt[instruction[0].first.from:instruction[at].first.from]}
	e.args.scene = prompt[instruction[at].last.to:instruction[len(instruction)-1].last.to]
	background := scene.Read(e.args.scene)
	if !slices.ContainsFunc(instruction[at:], func(p part) bool {
		return p.means.look == nil && scene.Place(prompt[p.first.from:p.last.to]) != ""
	}) {
		return false // "me in winter"
	}
	asked.edits = append(asked.edits, e)
	drop(instruction, func(p part) bool {
		return p.first.from <= instruction[at].first.from ||
			slices.ContainsFunc(strings.Fields(strings.ToLower(prompt[p.first.from:p.last.to])), background.Shows)
	})
	return true
}

// isColored reports whether an instruction is like "the person in color".
func isColored(instruction []part) bool {
	at := slices.IndexFunc(instruction, func(p part) bool { return p.first.text == "color" || p.first.text == "colour" })
	return at > 0 && hasPerson(instruction[:at]) && instruction[0].spared == Whole &&
		!slices.ContainsFunc(instruction, func(p part) bool {
			return isOther(p) && p.class != joiner || p.spared != Whole || p.whole && !strings.HasPrefix(p.first.text, "colo")
		})
}

// isPerson reports whether an instruction is only about the person: "anime only on the person",
// "make the man a watercolor".
func isPerson(instruction []part) bool {
	if instruction[0].class == negation || !hasPerson(instruction) || hasEdit(instruction) ||
		!slices.ContainsFunc(instruction, func(p part) bool { return p.means.look != nil || p.means.modifier != nil }) {
		return false
	}
	only, before := false, false // before means that a word for a person precedes
	turned := instruction[0].class == turning || instruction[0].means.modifier != nil && len(instruction) > 1 &&
		(instruction[1].describes() || len(instruction) == 2)
	if before = turned && instruction[0].class != turning; before && instruction[len(instruction)-1].first.text == "face" {
		return false // "brighten the person", but not "blur the face"
	}
	turned = turned || instruction[0].class == content && isPersonWord(instruction[0]) && !slices.ContainsFunc(instruction, func(p part) bool {
		return p.means.look != nil || in("insides", p.first.text)
	}) // "person black and white"
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

// recolor gives the background the scene or the color that an instruction names.
func (asked *request) recolor(prompt string, instruction []part) {
	text := prompt[instruction[0].last.to:instruction[len(instruction)-1].last.to]
	shown := scene.Read(text)
	shade, from := shadeAt(instruction, slices.IndexFunc(instruction, func(p part) bool { return p.means.modifier != nil && p.means.modifier.isColor() }))
	for i := range asked.edits {
		e := &asked.edits[i]
		if e.isGround() && scene.Place(text) != "" {
			e.operation, e.args = meant(Ground).edit, arguments{scene: text}
		}
		drop(instruction, func(p part) bool {
			m := p.means.modifier
			if e.isGround() && m != nil && m.isColor() && e.args.scene == "" {
				e.args.color = shade + m.name
				return true
			} else if from >= 0 && p.first == instruction[from].first && e.isGround() && e.args.scene == "" {
				return true
			}
			return e.isGround() && e.args.scene == text && (p.class != content || shown.Shows(strings.ToLower(prompt[p.first.from:p.last.to])))
		})
	}
}

// ground applies an instruction that contains a word for the background, and returns the area that it is about.
func (asked *request) ground(prompt string, instruction []part, at int) Area {
	p := &instruction[at]
	name := p.means.edit.name
	e := Edit{operation: p.means.edit, Phrase: prompt[p.first.from:p.last.to]}
	e.args.clear = has(instruction, "transparent") || slices.ContainsFunc(instruction, func(p part) bool { return p.names("transparent") })
	known := func(p part) bool {
		return p.class != content || isPersonWord(p) || len(p.arguments) > 0 && p.arguments[0].kinds == ratio || in("references", p.first.text) || in("transparent", p.first.text) ||
			in("lights", p.first.text) || in("darks", p.first.text) || in("brights", p.first.text)
	}
	others := slices.ContainsFunc(instruction, func(p part) bool { return !known(p) })
	// The function `nothing` treats the word for the background as an unknown word.
	nothing := func() Area {
		for i, other := range instruction {
			if m := other.means.modifier; m != nil && m.isColor() || i == at {
				instruction[i].class, instruction[i].means = content, meaning{}
			}
		}
		return Whole
	}
	add := func() Area {
		drop(instruction, func(other part) bool {
			edits := other.means.edit != nil && !other.means.edit.isGround() // "square, with a white background"
			return other.first.from != p.first.from && known(other) && !edits
		})
		if !asked.grounded() {
			asked.edits = append(asked.edits, e)
		}
		return Whole
	}
	change := func(modifier string) Area {
		drop(instruction, func(other part) bool { return known(other) && len(other.means.phrase) == 0 })
		p.means = meaning{modifier: meant(modifier).modifier, phrase: p.means.phrase}
		return Background
	}
	before := at - 1
	for before >= 0 && instruction[before].class == filler && !in("insides", instruction[before].first.text) {
		before--
	}
	inside := before >= 0 && in("insides", instruction[before].first.text)
	color := slices.IndexFunc(instruction, func(p part) bool { return p.means.modifier != nil && p.means.modifier.isColor() })
	shade, from := shadeAt(instruction, color)
	if from != color {
		instruction[from].class, instruction[from].means = filler, meaning{}
	}
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
	case name == removed && others && p.first.text == "cut": // "cut out the dog"
		return nothing()
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
		e.args.color = shade + instruction[color].means.modifier.name
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
			if p := instruction[i]; p.class == thing || in("transparent", p.first.text) {
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
