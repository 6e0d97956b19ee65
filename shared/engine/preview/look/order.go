package look

import (
	"math"
	"slices"
	"strings"
)

const (
	// maxOrdered limits a clause's edits, because each is compared with all parts.
	maxOrdered = 32
	// maxTitles limits how many texts a prompt can write.
	maxTitles = 4
)

// ordered is an edit whose arguments are still being collected.
type ordered struct {
	edit Edit
	// at is the index of the phrase. given is the set of argument kinds that the edit already has.
	at    int
	given kinds
	// limits means that the edit only says which seconds the others are limited to.
	limits bool
	// spans means that the phrase keeps seconds, and portion that it only names them, without a verb.
	spans, portion bool
}

// takes reports whether the edit can still take the argument.
func (o *ordered) takes(a argument) bool {
	wanted := a.kinds & o.edit.takes
	return wanted != 0 && (o.given&wanted == 0 || wanted&(place|seconds|axis|angle) != 0)
}

func (o *ordered) give(a argument) {
	if o.takes(a) {
		a.set(&o.edit.args)
		o.given |= a.kinds & o.edit.takes
	}
}

// turnHalf makes an edit turn the picture upside down.
func (o *ordered) turnHalf() {
	o.given, o.edit.args = angle, arguments{unit: angle, numbers: []float64{180}}
}

// hasDegree reports whether a factor gives the amount of an edit, such as a zoom.
func (o *operation) hasDegree() bool { return o.takes&^place == factor }

// Trims reports whether an edit keeps the first, the last or the middle seconds.
func (o *operation) Trims() bool { return o.name == "trim" || o.name == "last" || o.name == middle }

// orders reads the ordinary edits of a clause.
type orders struct {
	*request
	prompt string
	clause clause
	found  []ordered
	// writes means that the clause has a text to write. cuts means that it has a verb such as "remove".
	writes, cuts bool
}

func (c *orders) any(is func(ordered) bool) bool { return slices.ContainsFunc(c.found, is) }
func (c *orders) has(name string) bool {
	return c.any(func(o ordered) bool { return o.edit.name == name })
}

// order adds the ordinary edits of a clause. It turns their arguments into fillers, and edit phrases that request
// nothing into content. It returns the part of the clip to which the clause is limited.
func (asked *request) order(prompt string, clause clause) (span Span) {
	if len(clause) == 0 || clause.cancelled() {
		return Span{}
	}
	c := &orders{request: asked, prompt: prompt, clause: clause, writes: clause.writes()}
	c.collect()
	if at := slices.IndexFunc(c.found, func(o ordered) bool { return o.edit.name == Title }); at >= 0 {
		c.found[at].edit.args.box = boxIn(clause)
	}
	c.spread()
	if len(c.found) == 0 || len(c.found) == 1 && c.found[0].edit.name == "crop" && c.found[0].given == 0 {
		c.imply()
	}
	c.retime()
	c.found, span = limit(clause, c.found)
	clause.drop(func(p part) bool {
		return c.writes && (p.in("letters") || p.in("announcers")) || c.any(func(o ordered) bool { return o.explains(p) })
	})
	c.cuts = clause.any(func(p part) bool { return p.class == thing && !p.in("trims") && !p.in("wants") })
	c.uncrop()
	for _, o := range c.found {
		for _, adjust := range adjustments {
			adjust(c, &o)
		}
		switch p := &clause[o.at]; {
		case c.repeats(o):
			p.ignore()
		case c.rotates(o): // "rotate by 3° and crop the black corners away"
			clause.near(o.at).drop(func(part) bool { return true })
		case c.mentions(o):
			for k := range clause {
				if k == o.at || clause[k].kinds()&seconds != 0 {
					clause[k].disown()
				}
			}
		case c.fails(o):
			p.disown()
		default:
			c.add(o.edit)
		}
	}
	return span
}

// add adds an edit, unless it is there. Only texts may be there several times.
func (c *orders) add(e Edit) {
	at := slices.IndexFunc(c.Edits, func(known Edit) bool { return known.name == e.name })
	switch {
	case at < 0, e.name == Title && c.Edits[at].args.text != "" && e.args.text != "":
		c.Edits = append(c.Edits, e)
	case len(c.Edits[at].args.numbers) == 0 && e.OnlySound():
		c.Edits[at] = e // "it's too quiet, make it 10 dB louder"
	}
}

// explains reports whether a word only explains the edit, such as "audio" next to "mute".
func (o ordered) explains(p part) bool {
	timed := o.given&seconds != 0 || o.edit.Trims()
	return o.edit.name == "mirror" && p.in("horizontals") || o.edit.name == "border" && p.in("rings") ||
		o.edit.hasDegree() && p.in("particles") || o.edit.OnlySound() && p.in("sounds") ||
		o.edit.Crops() && (isPersonWord(p) || p.in("center")) ||
		o.given&units()[p.first.text] != 0 || o.given&pixels != 0 && p.in("sizes") ||
		p.class != named && timed && (p.in("spans") || p.in("keeps") || p.in("onlys"))
}

// collect finds the edits that the phrases of the clause name.
func (c *orders) collect() {
	for i := range c.clause {
		p := &c.clause[i]
		if p.means.edit == nil || p.isGround() {
			continue
		}
		c.blurred = c.blurred || p.isEdit(padded) && p.names("blurs")
		near := c.clause.near(i) // "hide her face with a black bar"
		hides := near.takesAway() || c.clause.follows("cutters", i) || c.clause[0].in("covers") || len(c.found) == 0 && near.has("faces")
		slow := in("slows", p.last.text) && i+1 < len(c.clause) && c.clause[i+1].in("afterSlow") // "slow fade"
		switch {
		case c.details(i):
			p.ignore()
		case slow, len(c.found) == maxOrdered, p.isFrame() && hides:
			p.disown()
		default:
			c.found = append(c.found, c.ordered(i))
		}
	}
}

// ordered returns the edit that a phrase names, with the arguments within the phrase.
func (c *orders) ordered(at int) ordered {
	p := c.clause[at]
	o := ordered{at: at, edit: Edit{operation: p.means.edit, Phrase: c.prompt[p.first.from:p.last.to]}}
	if p.isEdit("letterbox") && c.clause.has("rings") {
		o.edit.operation, o.edit.args.color = meant("border").edit, "black"
	}
	o.spans, o.portion = o.edit.Trims(), p.isPortion()
	o.limits = o.spans && isSegment(c.clause, at)
	if o.edit.name == "rotate" && p.names("halfTurns") && len(p.arguments) == 0 {
		o.turnHalf() // "turn it upside down"
	}
	for _, a := range p.arguments {
		o.give(a)
	}
	for _, word := range p.means.phrase {
		named := learned().named(word)
		if color := slices.IndexFunc(named, func(name string) bool { return colors()[name] }); color >= 0 && o.edit.name == "border" {
			o.edit.args.color = named[color] // "black frame"
		}
	}
	o.edit.args.tall = o.edit.args.tall || p.names("polaroids")
	return o
}

// details reports whether a phrase only adds to the edit before it, or repeats it.
func (c *orders) details(at int) bool {
	p := c.clause[at]
	if c.writes && p.isEdit(Title) && !p.writes() {
		return true // the quotation stands for "the text"
	}
	if len(c.found) == 0 {
		return false
	}
	last := &c.found[len(c.found)-1]
	switch same := p.isEdit(last.edit.name); {
	case p.isEdit("crop") && len(p.arguments) > 0 && last.takes(p.arguments[0]):
		last.give(p.arguments[0]) // "letterbox to 16:9"
		return true
	case same && p.isEdit("rotate") && in("halfTurns", p.last.text):
		last.turnHalf() // "dreh es auf den Kopf"
		return true
	case same && !last.edit.needs && len(p.arguments) == 0:
		return true // "rotate it a quarter turn left"
	case in("trims", c.clause[last.at].last.text) && p.in("edges"): // "trim 1 second from the end"
		c.clause[last.at].ignore()
		c.found = c.found[:len(c.found)-1]
	}
	return false
}

// uncrop ignores a crop without a shape next to seconds that are kept: "crop the last 2 seconds".
func (c *orders) uncrop() {
	if !c.any(func(o ordered) bool { return o.edit.Trims() || o.edit.name == bothEnds }) {
		return
	}
	c.found = slices.DeleteFunc(c.found, func(o ordered) bool {
		crop := o.edit.name == "crop" && o.given == 0
		if crop {
			c.cuts = true
			c.clause[o.at].ignore()
		}
		return crop
	})
}

// adjustments change an edit by the words around it, in this order.
var adjustments = []func(*orders, *ordered){
	(*orders).glide, (*orders).cut, (*orders).freeze, (*orders).degree, (*orders).fade,
	(*orders).pace,
}

// retime changes the speed of a clip instead of cutting it: "shorten it to 3 seconds by speeding it up".
func (c *orders) retime() {
	cut := slices.IndexFunc(c.found, func(o ordered) bool { return o.edit.name == "trim" && len(o.edit.args.numbers) == 1 })
	aims := cut >= 0 && c.clause[c.found[cut].at].in("sos") // "speed it up so it lasts 3 seconds"
	speed := slices.IndexFunc(c.found, func(o ordered) bool {
		return (o.edit.name == "faster" || o.edit.name == "slow motion") && (aims || c.clause.follows("bys", o.at))
	})
	if cut >= 0 && speed >= 0 && c.found[cut].edit.args.unit == seconds {
		c.found[speed].edit.args.lasts = c.found[cut].edit.args.numbers[0]
		c.clause[c.found[cut].at].ignore()
		c.found = slices.Delete(c.found, cut, cut+1)
	}
}

// glide makes a zoom slow: "zoom in on the face slowly".
func (c *orders) glide(o *ordered) {
	if o.edit.name == "zoom in" && c.clause.has("adverbs") {
		o.edit.operation = meant("zoom in slowly").edit
		c.clause.drop(func(p part) bool { return p.in("adverbs") })
	}
}

// cutOuts maps an edit that keeps seconds to the edit that removes them.
var cutOuts = map[string]string{"trim": "skip the first", "last": "remove the last"}

// cut makes an edit remove the seconds that it names if the clause has a verb such as "remove": "coupe les 3
// premières secondes", "remove everything between 1 s and 2 s", but not "cut it to the first second".
func (c *orders) cut(o *ordered) {
	p := c.clause[o.at]
	skips := !p.in("keeps") && !p.in("onlys") && (c.has("skip the first") || c.has("remove the last"))
	removes := cutOuts[o.edit.name]
	switch {
	case removes == "" || !c.cuts && !skips || c.clause.follows("tos", o.at):
	case len(o.edit.args.numbers) > 1:
		o.edit.operation = meant(partOut).edit
	default:
		o.edit.operation = meant(removes).edit
	}
}

// freeze freezes the frame of a moment instead of the last one, if the clause names it: "freeze at 2 s for 1 second".
func (c *orders) freeze(o *ordered) {
	_, looped := Find(c.Edits, Loop)
	if o.edit.name == freezeLast && (looped || c.has(Loop)) && c.clause[:o.at].has("thens") {
		last := *o.edit.operation
		last.rank = 1000 // "loop it, then freeze"
		o.edit.operation = &last
	}
	if o.edit.name != freezeLast || o.given&end != 0 {
		return
	}
	var at, lasts []float64
	for i, p := range c.clause {
		if p.kinds()&seconds == 0 {
			continue
		}
		var a arguments
		p.arguments[0].set(&a)
		if c.clause.follows("purposes", i) {
			lasts = append(lasts, a.numbers...)
		} else {
			at = append(at, a.numbers...)
		}
	}
	moment := c.clause.any(func(p part) bool { return in("ats", p.last.text) })
	if len(at) > 0 && (len(lasts) > 0 || len(at) > 1 || moment) {
		o.edit.operation = meant(freezeAt).edit
		o.edit.args.numbers = append(at[:min(2, len(at))], lasts...)
	}
}

// degree applies a word for the degree instead of a number: "a bit louder".
func (c *orders) degree(o *ordered) {
	s := c.clause.strength(o.at)
	if o.edit.name == "rotate" && s < 1 && len(o.edit.args.numbers) == 0 {
		o.edit.args.numbers = []float64{5} // "a little to the left"
	}
	if s == 1 || o.given&^place != 0 || !o.edit.hasDegree() || o.edit.name == Loop || o.edit.name == Upscale {
		return
	}
	o.edit.args.numbers = []float64{3}
	if s < 1 {
		o.edit.args.numbers[0] = 1.4
	}
}

// fade makes a fade apply only to the end or to the sound: "fade the music out".
func (c *orders) fade(o *ordered) {
	p, near := c.clause[o.at], c.clause.near(o.at)
	if o.edit.name == "fade in and out" && (o.given&end != 0 || p.first == p.last && near.has("outs")) {
		o.edit.operation = meant("fade out").edit
	}
	if o.edit.isFade() && near.has("tracks") && !near.has("scopes") && o.edit.args.color == "" {
		o.edit.operation = meant(strings.TrimSuffix(o.edit.name, " the sound") + " the sound").edit
		near.drop(func(p part) bool { return p.in("tracks") })
	}
}

// pace makes a clip slower if the requested speed is below the usual one: "25% speed".
func (c *orders) pace(o *ordered) {
	by := o.edit.args
	if c.isSpeed(*o) && (by.number(1) < 1 || by.percent && by.number(100) < 100) {
		o.edit.operation, o.edit.args.absolute = meant("slow motion").edit, true
	}
}

func (c *orders) isSpeed(o ordered) bool {
	return in("speeds", strings.Join(c.clause[o.at].means.phrase, " "))
}

// repeats reports whether an edit without arguments is a part of another: "cut to 9:16", "a boomerang loop",
// "schneide auf die ersten 3 Sekunden", "slow it to 25% speed".
func (c *orders) repeats(o ordered) bool {
	same := func(other ordered) bool {
		told := other.given != 0 || isSecond(c.clause[other.at].last.text)
		return other.at != o.at && (c.isSpeed(o) && other.edit.name == "slow motion" ||
			o.edit.needs && other.edit.needs && other.edit.takes == o.edit.takes && told)
	}
	return o.given == 0 && (o.edit.Trims() && c.has("crop") || o.edit.name == Loop && c.has(Boomerang) ||
		!c.clause[o.at].names("seconds") && c.any(same))
}

// rotates reports whether an edit only crops the corners of a rotated picture, which every rotation does.
func (c *orders) rotates(o ordered) bool {
	turn, turned := Find(c.Edits, "rotate")
	return turned && math.Mod(turn.args.degrees(), 90) != 0 && o.edit.name == "crop" && o.given == 0 && c.clause.near(o.at).has("margins")
}

// fails reports whether an edit lacks an argument, or is about an object that the prompt names: "flip the car".
func (c *orders) fails(o ordered) bool {
	p, e := c.clause[o.at], o.edit
	takes := e.takes
	if e.name == Title {
		takes = quotation
	}
	titles := slices.DeleteFunc(slices.Clone(c.Edits), func(e Edit) bool { return e.name != Title })
	switch {
	case (e.name == Title || e.name == Logo) && (c.clause[0].class == thing || len(titles) == maxTitles),
		e.name == partOut && len(e.args.numbers) != 2,
		e.name == freezeAt && len(e.args.numbers) == 0,
		e.needs && o.given&takes == 0 && !p.names("seconds"),
		e.name == "crop" && c.clause[0].class == turning && isLocal(c.clause) && !c.clause.whole(), // "make the hat square"
		p.in("tilts") && o.given&angle == 0:
		return true
	case e.name == "rotate":
		return isObject(c.clause, o.at, e) || o.given == 0 && c.clause[:o.at].hasPerson()
	}
	return o.given == 0 && isObject(c.clause, o.at, e)
}

// mentions reports whether an edit only names a part of the clip, next to a wish: "add snow in the last 3 seconds".
func (c *orders) mentions(o ordered) bool {
	if !o.spans || c.lone {
		return false
	}
	rest := c.clause[o.at+1:]
	final := func(p part) bool { return p.in("finals") && isUnspaced([]rune(p.words)[0]) }
	object, verb := rest.find(isUnknown), rest.find(final)
	if c.clause.follows("insides", o.at) && c.clause.count(content) > 0 || object >= 0 && object < verb {
		return true // "remove the logo in the last 2 seconds"
	}
	verbs := c.clause.any(func(p part) bool {
		return !p.in("wants") && (p.in("keeps") || p.in("things") || p.in("trims") || p.in("removals"))
	})
	return c.clause[0].class == placing || !verbs && !c.cuts && !c.any(func(o ordered) bool {
		return o.edit.needs && o.edit.takes&seconds != 0 && !o.portion
	})
}

// isPortion reports whether a part is a phrase such as "the last seconds", without a verb.
func (p part) isPortion() bool {
	other := func(word string) bool { return !in("portions", word) }
	return p.means.edit != nil && p.means.edit.Trims() && !slices.ContainsFunc(p.means.phrase, other)
}

// isLone reports whether a prompt only asks for a part of the clip: "just the last 2 seconds, please". Requests
// without unknown words may stand next to it: "first 3 seconds, mute".
func isLone(all clause) bool {
	for i, p := range all {
		plain := p.in("keeps") || p.in("onlys") || p.in("articles") || p.whole || p.in("plains") || p.class == joiner
		plain = plain || isTimely(p.first.text) || p.isPortion() || p.kinds()&(seconds|share) != 0
		unknown, near := p.class == content && len(p.arguments) == 0, all.near(i)
		if !plain && (unknown || near.plain() || near.any(part.isPortion)) {
			return false
		}
	}
	return true
}

// isObject reports whether the phrase is about an object that the prompt names next: "flip the car".
func isObject(c clause, at int, e Edit) bool {
	for _, p := range c[at+1:] {
		switch {
		case p.in("adverbs"), p.isColor():
		case p.class == content && !(e.Crops() && isPersonWord(p)):
			return true
		case p.class == filler && len(p.arguments) == 0 && !p.whole:
		default:
			return false
		}
	}
	return false
}

// boxIn returns the color of the box that a clause asks for, as in "on a red box", or "". It drops these words.
func boxIn(c clause) string {
	at := c.find(func(p part) bool { return p.in("boxes") && p.class == content })
	if at < 0 {
		return ""
	}
	box := "black"
	for near := max(0, at-1); near <= min(at+1, len(c)-1); near++ {
		if c[near].isColor() {
			box = c[near].means.modifier.name
		} else if near != at {
			continue
		}
		c[near].ignore()
	}
	return box
}

// spread gives the arguments in the clause to its edits.
func (c *orders) spread() {
	timed := c.clause.any(part.isSecond) // "blurred until second 2"
	modified := !timed && c.clause.any(func(p part) bool { return p.means.modifier != nil && !p.isColor() })
	for i := range c.clause {
		p := &c.clause[i]
		if p.means.edit != nil {
			continue
		}
		given, word := p.arguments, i
		if p.isColor() {
			shade, from := shadeAt(c.clause, i)
			name := shade + p.means.modifier.name
			given, word = []argument{{paint, func(a *arguments) { a.color = name }}}, from
		}
		for _, a := range given {
			if c.give(a, i) {
				c.clause[word].ignore()
				p.ignore()
				break
			}
			if a.kinds&factor != 0 && p.class == content {
				p.strengthen(a)
				if p.strength != 0 && modified {
					p.class = filler
				}
			}
		}
	}
}

// give gives an argument to the edit before it or, if that does not take it or if an "and" lies between, to the edit
// after it. It returns false if neither takes it.
func (c *orders) give(a argument, at int) bool {
	next := 0
	for next < len(c.found) && c.found[next].at < at {
		next++
	}
	before := next - 1
	for before >= 0 && c.found[before].limits && a.kinds&seconds == 0 {
		if a.kinds&share != 0 && c.found[before].at+1 == at {
			break // "the first half"
		}
		before--
	}
	nearest := []int{before, next}
	if next > 0 && c.clause[c.found[next-1].at:at].count(joiner) > 0 {
		nearest = []int{next, before}
	}
	timed := c.isTime(a, at)
	for _, n := range nearest {
		if n < 0 || n >= len(c.found) {
			continue
		}
		o := &c.found[n]
		takes := o.takes(a) || a.kinds == ratio && o.edit.takes&ratio != 0
		if !takes || timed && o.edit.takes&seconds == 0 || a.kinds == share && o.at+1 < at {
			continue
		}
		o.give(a)
		o.edit.args.absolute = o.edit.args.absolute || o.at < at && c.clause[at-1].in("tos")
		return true
	}
	return false
}

// isTime reports whether the words before an argument make it a time: "during the first half", "from 1 to 2 s".
func (c *orders) isTime(a argument, at int) bool {
	if a.kinds&share != 0 && c.clause.follows("durings", at) {
		return true
	}
	return a.kinds == angle|seconds|factor && (c.clause.follows("sinces", at) || c.clause.follows("untils", at) ||
		c.clause.follows("tos", at) && c.clause[:at].has("sinces"))
}

// strengthen sets a part's strength from a number: "brighter by 20%", "2x brighter".
func (p *part) strengthen(a argument) {
	var by arguments
	a.set(&by)
	if by.percent {
		p.strength = max(0.25, min(by.number(30)/30, 2))
	} else if by.unit == factor || by.unit == 0 && by.number(1) > 1 && by.number(1) <= 10 {
		p.strength = 1.6
	}
}

// shadeAt returns a color's shade, such as "light ", and the index of the word for it, or of the color.
func shadeAt(c clause, at int) (shade string, from int) {
	for _, i := range []int{at, at - 1, at + 1} {
		if at < 0 || i < 0 || i >= len(c) {
			continue
		}
		switch word := c[i].first.text; {
		case in("lights", word), i == at && strings.HasPrefix(word, "hell"):
			return "light ", i
		case in("darks", word), i == at && strings.HasPrefix(word, "dunkel"):
			return "dark ", i
		case in("brights", word):
			return "", i
		}
	}
	return "", at
}

// imply adds the edit that a clause requests only by its numbers: "500 pixels wide", "remove 1 s to 2 s".
func (c *orders) imply() {
	at := c.clause.find(func(p part) bool { return p.class == content && p.kinds() == pixels })
	if at < 0 {
		c.implyCut()
	} else if !c.clause.hasEdit() { // not "crop 100 pixels from the left"
		o := c.implied(Resize, at)
		for _, p := range c.clause {
			for _, a := range p.arguments {
				o.give(a)
			}
		}
		c.clause.drop(func(p part) bool { return p.kinds() == axis })
		c.found = []ordered{o}
	}
}

// implied returns an edit that has no phrase but that the part with the index requests.
func (c *orders) implied(name string, at int) ordered {
	phrase := c.prompt[c.clause[0].first.from:c.clause[len(c.clause)-1].last.to]
	o := ordered{at: at, edit: Edit{operation: meant(name).edit, Phrase: phrase}}
	c.clause[at].class, c.clause[at].means = named, meant(name)
	return o
}

// implyCut adds the cut that a clause requests by its seconds. It needs a verb, unless both ends are given.
func (c *orders) implyCut() {
	keeps := c.alone || c.clause.any(func(p part) bool { return p.class == filler && (p.in("keeps") || p.in("onlys")) })
	removal := func(p part) bool { return p.means.edit != nil && p.in("removals") }
	cuts := !keeps && (c.clause.removes() || c.clause.any(removal))
	keeps = keeps || c.clause.hasEdit() // "crop from 1 s to 3 s"
	span, times := between(c.clause, true)
	if len(times) == 0 || !c.lone && !keeps && !cuts || c.clause.any(func(p part) bool {
		return p.changes() || p.class == content && len(p.arguments) == 0 && !isTimely(p.first.text)
	}) {
		return
	}
	name, numbers := "trim", []float64{span.From, span.To}
	switch {
	case len(times) == 1:
		if numbers = []float64{max(span.From, span.To)}; keeps == (span.To == 0) {
			name = "skip the first" // "keep only after 2 s"
		}
	case cuts:
		name = partOut
	}
	c.clause.drop(func(p part) bool { return p.class != named })
	o := c.implied(name, times[0])
	o.edit.args.numbers, o.given = numbers, seconds
	c.found = []ordered{o}
}
