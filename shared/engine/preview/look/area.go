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

// areas returns the area that each clause is about. It adds the background edits. It turns the words for these edits
// and for areas into fillers.
func (asked *request) areas(prompt string, split []clause) []Area {
	found := make([]Area, len(split))
	for i, c := range split {
		boxed(c)
		if area := sparedBy(c); area != Whole {
			asked.spare(found, split, i, area)
		}
	}
	for i, c := range split {
		if found[i] == Whole && sparedBy(c) == Whole {
			asked.area(prompt, found, split, i)
		}
	}
	return found
}

// area finds the area that the clause with an index is about.
func (asked *request) area(prompt string, found []Area, split []clause, i int) {
	c := split[i]
	at := max(c.find(part.isGround), c.find(func(p part) bool { return p.isEdit(removed) }))
	switch {
	case i > 0 && c[0].in("onlys") && !c.any(func(p part) bool { return isOther(p) && areaOf(p) == Whole }):
		found[i-1] = about(c) // "black and white, only the background"
		c.drop(func(part) bool { return true })
	case at >= 0:
		found[i] = asked.ground(prompt, c, at)
	case asked.placed(prompt, c):
	case i > 0 && i+1 == len(split) && asked.grounded() && !c.negated() && !c.hasEdit() && fills(prompt, c):
		asked.recolor(prompt, c)
	case isPerson(c), i > 0 && found[i-1] == Background && about(c) == Person && !c.any(isUnknown):
		found[i] = Person
		c.drop(isPersonWord)
	}
}

// boxed turns "background" after a text to write into a word for the text's box: `"Sale" on a red background`.
func boxed(c clause) {
	for i, p := range c {
		if (p.isEdit(Ground) || p.means.edit != nil && p.in("blacks")) && c[:i].writes() {
			c[i].disown()
			c[i].first.text = "box"
		}
	}
}

// fills reports whether a clause after the removal of the background may say what replaces it: "and make it white" or
// "and put a beach instead".
func fills(prompt string, c clause) bool {
	return c.any(func(p part) bool { return p.whole || p.class == placing && scene.Place(prompt[p.last.to:]) != "" })
}

func (o *operation) isGround() bool {
	return slices.Contains([]string{Ground, removed, blurred, personColor}, o.name)
}

func (asked *request) grounded() bool {
	_, found := FindGround(asked.Edits)
	return found
}

func isPersonWord(p part) bool { return p.in("persons") }

// isOther reports whether a part is neither about a person nor a filler. isUnknown is true for an unknown word that
// names no person.
func isOther(p part) bool   { return p.class != filler && !isPersonWord(p) }
func isUnknown(p part) bool { return p.class == content && !isPersonWord(p) }

// areaOf returns the area that a word names, or Whole.
func areaOf(p part) Area {
	switch {
	case isPersonWord(p):
		return Person
	case p.isEdit(Ground):
		return Background
	}
	return Whole
}

// about returns the area that the words before the next joiner name first, or Whole.
func about(c clause) Area {
	for _, p := range c {
		switch {
		case p.class == joiner:
			return Whole
		case areaOf(p) != Whole:
			return areaOf(p)
		case p.isGround():
			return Background
		}
	}
	return Whole
}

// sparedBy returns the area that a clause excludes, or Whole.
func sparedBy(c clause) (area Area) {
	if isColored(c) {
		return Person
	}
	kept := c.negated() && (!c[0].in("lacks") ||
		len(c) > 1 && (c[1].class == turning || c[1].in("changing"))) // "without changing the background"
	for i, p := range c {
		switch {
		case p.spared != Whole:
			return p.spared
		case kept && i > 0 && (!c[0].in("keeps") && p.changes() ||
			p.class == content && areaOf(p) == Whole && !p.in("changing")):
			return Whole // "don't make the background red"
		case kept:
			area = max(area, areaOf(p))
		}
	}
	return area
}

// spare applies clauses to the rest of the picture if the clause with the given index excludes an area. It changes
// `found`, which has the areas of the clauses.
func (asked *request) spare(found []Area, split []clause, at int, area Area) {
	rest, c := Background+Person-area, split[at]
	changes := func(i int) bool { return i >= 0 && i < len(split) && !split[i].negated() && split[i].changes() }
	switch {
	case c.negated(), isColored(c):
		for i := range split {
			other := func(p part) bool { return areaOf(p) == area || areaOf(p) == Background }
			if changes(i) && !split[i].any(other) {
				found[i] = rest
				split[i].drop(isPersonWord)
			}
		}
		if !c.negated() {
			c.drop(func(part) bool { return true })
		}
	case changes(at):
		found[at] = rest
	case area == Person && c[0].class == thing:
		asked.Edits = append(asked.Edits, Edit{operation: meant(Ground).edit, args: arguments{removed: true}})
		c.drop(func(part) bool { return true })
	case c[len(c)-1].in("colorings") && at == 0:
		asked.of(area).modify(meant("grayscale").modifier, 1)
	case changes(at - 1):
		found[at-1] = rest
	case changes(at + 1):
		found[at+1] = rest
	}
}

// meant returns the meaning with the given name.
func meant(name string) meaning {
	all := learned().meanings[words(name)[0]]
	return all[slices.IndexFunc(all, func(m meaning) bool { return m.name() == name })]
}

// placed adds a background edit if a clause puts people into a scene, such as "put her on a beach".
func (asked *request) placed(prompt string, c clause) bool {
	at := c.find(func(p part) bool { return p.in("insides") })
	if at < 1 || !c[:at].hasPerson() || asked.grounded() ||
		c[:at].any(func(p part) bool { return isOther(p) && p.class != placing }) {
		return false
	}
	e := Edit{operation: meant(Ground).edit, Phrase: prompt[c[0].first.from:c[at].first.from]}
	e.args.scene = prompt[c[at].last.to:c[len(c)-1].last.to]
	background := scene.Read(e.args.scene)
	if !c[at:].any(func(p part) bool { return isScenery(prompt, p) }) {
		return false // "me in winter"
	}
	asked.Edits = append(asked.Edits, e)
	c.drop(func(p part) bool {
		return p.first.from <= c[at].first.from ||
			slices.ContainsFunc(strings.Fields(strings.ToLower(prompt[p.first.from:p.last.to])), background.Shows)
	})
	return true
}

// isScenery reports whether a part names a scene that can be painted, and no look such as "snowy".
func isScenery(prompt string, p part) bool {
	return p.means.look == nil && scene.Place(prompt[p.first.from:p.last.to]) != ""
}

// isColored reports whether a clause is like "the person in color".
func isColored(c clause) bool {
	at := c.find(func(p part) bool { return p.in("incolors") })
	return at > 0 && c[:at].hasPerson() && c[0].spared == Whole && !c.any(func(p part) bool {
		return isOther(p) && p.class != joiner && !p.in("incolors") || p.spared != Whole || p.whole && !p.in("colorings")
	})
}

// isPerson reports whether a clause is only about the person: "anime only on the person", "make the man an anime".
func isPerson(c clause) bool {
	if c.negated() || !c.hasPerson() || c.hasEdit() || !c.changes() ||
		c.any(func(p part) bool { return isUnknown(p) && !p.in("onlys") }) {
		return false
	}
	changed := c[0].means.modifier != nil && len(c) > 1 && (c[1].describes() || len(c) == 2)
	switch {
	case changed && c[len(c)-1].in("faces"):
		return false // "brighten the person", but not "blur the face"
	case changed, c.has("onlys"):
		return true
	}
	described := isPersonWord(c[0]) && c[0].class == content &&
		!c.any(func(p part) bool { return p.means.look != nil || p.in("insides") }) // "person black and white"
	if c[0].class != turning && !described {
		return false
	}
	person, change := c.find(isPersonWord), c.find(func(p part) bool { return len(p.means.phrase) > 0 })
	return person < change
}

// recolor gives the background the scene or the color that a clause names.
func (asked *request) recolor(prompt string, c clause) {
	at := slices.IndexFunc(asked.Edits, Edit.isGround)
	e := &asked.Edits[at]
	if e.args.scene != "" && scene.Place(prompt[c[0].last.to:]) == "" {
		return
	}
	text := prompt[c[0].last.to:c[len(c)-1].last.to]
	if scene.Place(text) != "" {
		e.operation, e.args = meant(Ground).edit, arguments{scene: text}
		shown := scene.Read(text)
		c.drop(func(p part) bool {
			return p.class != content || shown.Shows(strings.ToLower(prompt[p.first.from:p.last.to]))
		})
		return
	}
	color := c.color()
	shade, from := shadeAt(c, color)
	if from != color {
		c[from].ignore()
	}
	c.drop(func(p part) bool {
		if p.isColor() {
			e.args.color = shade + p.means.modifier.name
		}
		return p.isColor()
	})
}

// grounding applies a clause that contains a word for the background.
type grounding struct {
	*request
	prompt string
	clause clause
	at     int // the index of the word for the background
	edit   Edit
	// others means that the clause has unknown words.
	others bool
	// color is the requested color, with its shade, or "".
	color string
}

// ground applies a clause that contains a word for the background, and returns the area that it is about.
func (asked *request) ground(prompt string, c clause, at int) Area {
	p := c[at]
	g := &grounding{request: asked, prompt: prompt, clause: c, at: at}
	g.edit = Edit{operation: p.means.edit, Phrase: prompt[p.first.from:p.last.to]}
	g.edit.args.clear = c.any(func(p part) bool { return p.in("transparent") || p.names("transparent") })
	g.others = c.any(func(p part) bool { return !isKnownToGround(p) })
	if color := c.color(); color >= 0 {
		shade, from := shadeAt(c, color)
		g.color = shade + c[color].means.modifier.name
		if from != color {
			c[from].ignore()
		}
	}
	if at+1 < len(c) && c[at+1].in("afterGround") {
		return g.nothing() // "background music"
	}
	switch g.edit.name {
	case blurred:
		return g.change("blur")
	case personColor:
		return g.change("grayscale")
	case removed:
		return g.remove()
	}
	return g.replace()
}

func isKnownToGround(p part) bool {
	return p.class != content || isPersonWord(p) || p.kinds() == ratio || p.in("references") ||
		p.in("transparent") || p.in("lights") || p.in("darks") || p.in("brights")
}

// nothing treats the word for the background as an unknown word.
func (g *grounding) nothing() Area {
	for i, p := range g.clause {
		if p.isColor() || i == g.at {
			g.clause[i].disown()
		}
	}
	return Whole
}

// add adds the background edit, unless there is one.
func (g *grounding) add() Area {
	g.clause.drop(func(p part) bool {
		edits := p.means.edit != nil && !p.isGround() // "square, with a white background"
		return p.first.from != g.clause[g.at].first.from && isKnownToGround(p) && !edits
	})
	if !g.grounded() {
		g.Edits = append(g.Edits, g.edit)
	}
	return Whole
}

// change makes the clause change only the background.
func (g *grounding) change(modifier string) Area {
	g.clause.drop(func(p part) bool { return isKnownToGround(p) && len(p.means.phrase) == 0 })
	p := &g.clause[g.at]
	p.means = meaning{modifier: meant(modifier).modifier, phrase: p.means.phrase}
	return Background
}

// remove follows a phrase that removes the background, such as "cut out the person".
func (g *grounding) remove() Area {
	p := g.clause[g.at]
	if g.others && p.in("cuts") {
		return g.nothing() // "cut out the dog"
	}
	g.edit.args.removed = true
	if p.in("greens") {
		g.edit.args.color = "green"
	}
	return g.add()
}

// replace follows a clause with the plain word "background".
func (g *grounding) replace() Area {
	c := g.clause
	inside := g.at - 1
	for inside >= 0 && c[inside].class == filler && !c[inside].in("insides") {
		inside--
	}
	changes := c.any(func(p part) bool { return p.changes() && !p.isColor() })
	switch {
	case c.negated():
		if !c[0].in("lacks") || c.any(func(p part) bool { return p.class == content || p.class == turning }) {
			return Whole
		}
		c[0].class, g.edit.args.removed = filler, true // "without background"
		return g.add()
	case g.others && inside >= 0 && c[inside].in("insides"):
		return g.nothing() // "add a castle in the background"
	case removes(c, g.at):
		g.edit.args.removed = true
		return g.add()
	case g.paint():
		background := scene.Read(g.edit.args.scene)
		c.drop(func(p part) bool { return background.Shows(strings.ToLower(g.prompt[p.first.from:p.last.to])) })
		return g.add()
	case g.others:
		return g.nothing()
	case changes:
		c.drop(func(p part) bool { return p.first.from == c[g.at].first.from || isPersonWord(p) })
		return Background
	case g.color != "":
		g.edit.args.color = g.color
		return g.add()
	case c.has("references"):
		return g.add()
	}
	return g.nothing()
}

// removes reports whether the word next to "background" asks to remove the background.
func removes(c clause, at int) bool {
	for _, step := range []int{-1, 1} {
		for i := at + step; i >= 0 && i < len(c); i += step {
			if p := c[i]; p.class == thing || p.in("transparent") {
				return true
			} else if p.class != filler && !p.isColor() { // "remove the blue background"
				break
			}
		}
	}
	return false
}

// paint sets the edit's scene if the clause names one: the words after "background" or, if there are none, the word
// before it.
func (g *grounding) paint() bool {
	c := g.clause
	if c[g.at+1:].any(func(p part) bool { return isScenery(g.prompt, p) }) {
		g.edit.args.scene = g.prompt[c[g.at].last.to:c[len(c)-1].last.to]
		return true
	}
	for i := g.at - 1; i >= 0; i-- { // "a beach at sunset as the background"
		if isScenery(g.prompt, c[i]) {
			g.edit.args.scene = g.prompt[c[i].first.from:c[g.at].first.from]
			return true
		} else if (c[i].class != filler || c[i].in("ins")) && c[i].means.look == nil {
			break
		}
	}
	return false
}
