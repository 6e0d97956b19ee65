package look

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// closings maps opening quotation marks to the marks that may close them.
var closings = sync.OnceValue(func() map[rune]string {
	return map[rune]string{'"': `"`, '“': "”\"", '„': "“”\"", '«': "»", '「': "」", '『': "』", '\'': "'"}
})

// maxQuotation limits a quotation, in bytes. It also limits the search for the closing mark.
const maxQuotation = 1000

// quotedAt returns the quotation that starts at the first token. end is the offset of its end in bytes, or 0 if
// there is none. After a word such as "text", capitalized words need no quotation marks: "add text Hello World".
func quotedAt(prompt string, found []part, tokens []token) (text string, end int) {
	t, last := tokens[0], part{}
	if len(found) > 0 {
		last = found[len(found)-1]
	}
	gap := prompt[last.last.to:t.from]
	opening := strings.LastIndexFunc(gap, func(r rune) bool { return closings()[r] != "" })
	if opening < 0 || opening == 0 && len(found) > 0 && !isUnspaced([]rune(last.last.text + " ")[0]) || last.writes() && !strings.ContainsAny(gap[:opening], " \n") {
		capital := func(t token) bool { return unicode.IsUpper([]rune(prompt[t.from:t.to])[0]) }
		says := len(found) > 1 && in("sayings", last.last.text) && announces(found[:len(found)-1])
		if !in("writings", last.last.text) && !says || strings.Trim(gap, " :") != "" || !strings.Contains(gap, ":") && (!capital(t) || capital(last.first)) && !says {
			return "", 0
		}
		for i, next := range tokens {
			ends := in("joiners", next.text) || in("insides", next.text)
			if says { // "see you in june", but not "see you at the top" or "see you in red"
				ends = ends && slices.ContainsFunc(tokens[min(i+1, len(tokens)):min(len(tokens), i+3)], func(t token) bool {
					return directions()[t.text].set != nil || slices.ContainsFunc(learned().meanings[t.text], func(m meaning) bool { return len(m.phrase) == 1 }) || classOf(t.text) >= placing
				})
			}
			if i > 0 && (next.from-t.from > maxQuotation || next.clause != t.clause || ends && !capital(tokens[min(i+1, len(tokens)-1)])) {
				return strings.TrimRight(prompt[t.from:next.from], " ,.;:"), next.from
			}
		}
		return strings.TrimSpace(prompt[t.from:]), len(prompt)
	}
	mark, size := utf8.DecodeRuneInString(gap[opening:])
	from := last.last.to + opening + size
	length := closingAt(prompt[from:min(len(prompt), from+maxQuotation)], closings()[mark])
	if from+length <= t.from {
		return "", 0
	}
	return strings.TrimSpace(prompt[from : from+length]), from + length
}

// closingAt returns the offset of the first closing mark that no letter follows, unlike the one in "It's", or -1.
func closingAt(text, marks string) int {
	for at, r := range text {
		if strings.ContainsRune(marks, r) {
			if next, _ := utf8.DecodeRuneInString(text[at+utf8.RuneLen(r):]); r != '\'' || !unicode.IsLetter(next) {
				return at
			}
		}
	}
	return -1
}

// announces reports whether the parts before a quotation show that it is text to write.
func announces(before []part) bool {
	for i := len(before) - 1; i >= max(0, len(before)-6); i-- {
		p := before[i]
		if p.class == placing || in("announcers", p.first.text) || p.means.edit != nil && p.means.edit.name == Title {
			return true
		}
	}
	return false
}

// announced reports whether the words after a quotation, which ends at an offset, show that it is text to write.
func (v *vocabulary) announced(tokens []token, end int) bool {
	for len(tokens) > 0 && tokens[0].from < end {
		tokens = tokens[1:]
	}
	return slices.ContainsFunc(tokens[:min(len(tokens), 6)], func(t token) bool {
		return in("announcers", t.text) || in("writings", t.text) || slices.ContainsFunc(v.meanings[t.text], func(m meaning) bool { return m.name() == Title && len(m.phrase) == 1 })
	})
}

// maxOrdered limits an instruction's edits, because each is compared with all parts.
const maxOrdered = 32

// order adds the ordinary edits of an instruction. It turns their arguments into fillers, and edit phrases that
// request nothing into content.
// It returns the part of the clip to which the instruction is limited.
func (asked *request) order(prompt string, instruction []part) (span Span) {
	if len(instruction) == 0 || instruction[0].class == negation || count(instruction, refusal) > 0 {
		return Span{}
	}
	var found []ordered
	writes := slices.ContainsFunc(instruction, part.writes)
	for i := range instruction {
		p := &instruction[i]
		if p.means.edit == nil || p.means.edit.isGround() {
			continue
		}
		asked.blurred = asked.blurred || p.means.edit.name == padded && p.names("blurs")
		switch last := len(found) - 1; {
		case last >= 0 && len(p.arguments) > 0 && p.means.edit.name == "crop" && found[last].takes(p.arguments[0]):
			found[last].give(p.arguments[0]) // "letterbox to 16:9"
			p.class, p.means = filler, meaning{}
			continue
		case last >= 0 && p.means.edit.name == "rotate" && found[last].edit.name == "rotate" && in("halfTurns", p.last.text):
			found[last].edit.args = arguments{unit: angle, numbers: []float64{180}} // "dreh es auf den Kopf"
			p.class, p.means = filler, meaning{}
			continue
		case writes && p.means.edit.name == Title && !p.writes(), // the quotation stands for "the text"
			last >= 0 && p.means.edit.name == found[last].edit.name && !p.means.edit.needs && len(p.arguments) == 0: // "rotate it a quarter turn left"
			p.class, p.means = filler, meaning{}
			continue
		case p.last.text == "slow" && i+1 < len(instruction) && in("afterSlow", instruction[i+1].first.text), len(found) == maxOrdered:
			p.class, p.means = content, meaning{}
			continue
		case last >= 0 && in("trims", instruction[found[last].at].last.text) && in("edges", p.first.text):
			instruction[found[last].at].class, instruction[found[last].at].means = filler, meaning{}
			found = found[:last]
		}
		o := ordered{at: i, edit: Edit{operation: p.means.edit, Phrase: prompt[p.first.from:p.last.to]}}
		o.limits = p.means.edit.isSpan() && segment(instruction, i) // "slow motion for the last 2 seconds"
		for _, a := range p.arguments {
			o.give(a)
		}
		for _, word := range p.means.phrase {
			if colors()[word] && o.edit.name == "border" {
				o.edit.args.color = word // "black frame"
			}
			o.edit.args.tall = o.edit.args.tall || word == "polaroid"
		}
		found = append(found, o)
	}
	if at := slices.IndexFunc(found, func(o ordered) bool { return o.edit.name == Title }); at >= 0 {
		found[at].edit.args.box = boxIn(instruction)
	}
	modified := slices.ContainsFunc(instruction, func(p part) bool { return p.means.modifier != nil && !p.means.modifier.isColor() }) &&
		!slices.ContainsFunc(instruction, func(p part) bool { return units()[p.first.text] == seconds }) // "blurred until second 2"
	for i := range instruction {
		spread(instruction, i, found, modified)
	}
	if len(found) == 0 || len(found) == 1 && found[0].edit.name == "crop" && found[0].given == 0 {
		if o, implies := implied(prompt, instruction); implies {
			found = []ordered{o}
		}
	}
	found, span = limit(instruction, found)
	drop(instruction, func(p part) bool {
		return writes && in("letters", p.first.text) || slices.ContainsFunc(found, func(o ordered) bool {
			return o.edit.OnlySound() && in("sounds", p.first.text) || o.edit.Crops() && (isPersonWord(p) || in("center", p.first.text)) ||
				o.given&units()[p.first.text] != 0 || p.class != named && (o.given&seconds != 0 || o.edit.isSpan()) && (in("spans", p.first.text) || in("keeps", p.first.text) || in("onlys", p.first.text)) || o.given&pixels != 0 && in("sizes", p.first.text)
		})
	})
	cuts := slices.ContainsFunc(instruction, func(p part) bool { return p.class == thing && !in("trims", p.first.text) })
	if slices.ContainsFunc(found, func(o ordered) bool { return o.edit.isSpan() }) {
		found = slices.DeleteFunc(found, func(o ordered) bool {
			crop := o.edit.name == "crop" && o.given == 0 // "crop the last 2 seconds"
			if crop {
				cuts, instruction[o.at].class, instruction[o.at].means = true, filler, meaning{}
			}
			return crop
		})
	}
	turns := slices.ContainsFunc(found, func(o ordered) bool { return o.edit.name == Boomerang })
	for _, o := range found {
		p := &instruction[o.at]
		if slow := func(p part) bool { return in("adverbs", p.first.text) }; o.edit.name == "zoom in" && slices.ContainsFunc(instruction, slow) {
			o.edit.operation = meant("zoom in slowly").edit
			drop(instruction, slow)
		}
		skips := !in("keeps", p.first.text) && !in("onlys", p.first.text) && slices.ContainsFunc(found, func(o ordered) bool {
			return o.edit.name == "skip the first" || o.edit.name == "remove the last"
		})
		if instead := map[string]string{"trim": "skip the first", "last": "remove the last"}[o.edit.name]; (cuts || skips) && instead != "" && !precedes("tos", instruction, o.at) {
			o.edit.operation = meant(instead).edit // "coupe les 3 premières secondes"
			if len(o.edit.args.numbers) > 1 {
				o.edit.operation = meant(partOut).edit // "remove everything between 1 s and 2 s"
			}
		}
		if o.edit.name == "rotate" && len(o.edit.args.numbers) == 0 && p.names("halfTurns") {
			o.given, o.edit.args = angle, arguments{unit: angle, numbers: []float64{180}}
		}
		if o.edit.name == freezeLast && o.given&end == 0 {
			o.freeze(instruction)
		}
		if s := strengthAt(instruction, o.at); s != 1 && o.given == 0 && o.edit.takes == factor && o.edit.name != Loop && o.edit.name != Upscale {
			o.edit.args.numbers = []float64{map[bool]float64{true: 1.4, false: 3}[s < 1]} // "a bit louder"
		}
		near := segmentAt(instruction, o.at)
		titles := slices.DeleteFunc(slices.Clone(asked.edits), func(e Edit) bool { return e.name != Title })
		if o.edit.name == "fade in and out" && (o.given&end != 0 || p.first == p.last && has(near, "outs")) {
			o.edit.operation = meant("fade out").edit
		}
		if strings.HasPrefix(o.edit.name, "fade") && has(near, "tracks") && !has(near, "scopes") && o.edit.args.color == "" {
			o.edit.operation = meant(strings.TrimSuffix(o.edit.name, " the sound") + " the sound").edit
			drop(near, func(p part) bool { return in("tracks", p.first.text) })
		}
		if by := o.edit.args; in("speeds", strings.Join(p.means.phrase, " ")) && (by.number(1) < 1 || by.percent && by.number(100) < 100) {
			o.edit.operation, o.edit.args.absolute = meant("slow motion").edit, true
		}
		same := func(other ordered) bool {
			tempo := in("speeds", strings.Join(p.means.phrase, " ")) && other.edit.name == "slow motion" // "slow it to 25% speed"
			return other.at != o.at && (tempo || o.edit.needs && other.edit.needs && other.edit.takes == o.edit.takes && (other.given != 0 || isSecond(instruction[other.at].last.text)))
		}
		crops := slices.ContainsFunc(found, func(o ordered) bool { return o.edit.name == "crop" })
		if o.given == 0 && (o.edit.isSpan() && crops || turns && o.edit.name == Loop || // "cut to 9:16", "a boomerang loop"
			!slices.ContainsFunc(p.means.phrase, isSecond) && slices.ContainsFunc(found, same)) { // "schneide auf die ersten 3 Sekunden"
			p.class, p.means = filler, meaning{}
			continue
		}
		if (o.edit.name == Title || o.edit.name == Logo) && (instruction[0].class == thing || len(titles) == maxTitles) ||
			o.edit.name == partOut && len(o.edit.args.numbers) != 2 || in("tilts", p.first.text) && o.given&angle == 0 || o.edit.needs && o.given&map[bool]kinds{true: quotation, false: o.edit.takes}[o.edit.name == Title] == 0 && !slices.ContainsFunc(p.means.phrase, isSecond) ||
			(o.given == 0 || o.edit.name == "rotate") && isObject(instruction, o.at, o.edit) || o.edit.name == "rotate" && o.given == 0 && hasPerson(instruction[:o.at]) {
			p.class, p.means = content, meaning{}
			continue
		}
		known, again := Find(asked.edits, o.edit.name)
		if again && o.edit.name == Title && known.args.text != "" && o.edit.args.text != "" || !again {
			asked.edits = append(asked.edits, o.edit)
		}
	}
	return span
}

// implied returns the edit that an instruction requests only by its numbers: "remove 1 s to 2 s", "from 1 to 2 seconds"
// or "500 pixels wide".
func implied(prompt string, instruction []part) (o ordered, found bool) {
	o = ordered{edit: Edit{operation: meant(Resize).edit, Phrase: prompt[instruction[0].first.from:instruction[len(instruction)-1].last.to]}}
	at := slices.IndexFunc(instruction, func(p part) bool {
		return p.class == content && len(p.arguments) > 0 && p.arguments[0].kinds == pixels
	})
	if at >= 0 && hasEdit(instruction) {
		return o, false // "crop 100 pixels from the left"
	} else if at >= 0 {
		o.at, instruction[at].class, instruction[at].means = at, named, meant(Resize)
		for i := range instruction {
			for _, a := range instruction[i].arguments {
				o.give(a)
			}
		}
		drop(instruction, func(p part) bool { return len(p.arguments) > 0 && p.arguments[0].kinds == axis })
		return o, true
	}
	span, times := between(instruction, []ordered{o})
	keeps := slices.ContainsFunc(instruction, func(p part) bool {
		return p.class == filler && (in("keeps", p.first.text) || in("onlys", p.first.text))
	})
	cuts := !keeps && slices.ContainsFunc(instruction, func(p part) bool { return p.class == thing || p.means.edit != nil && in("removals", p.first.text) })
	keeps = keeps || hasEdit(instruction) // "crop from 1 s to 3 s"
	if len(times) == 0 || slices.ContainsFunc(instruction, func(p part) bool {
		return p.means.look != nil || p.means.modifier != nil || p.class == content && len(p.arguments) == 0 && !isTimely(p.first.text)
	}) {
		return o, false
	}
	name := map[bool]string{true: partOut, false: "trim"}[cuts]
	o.edit.args.numbers = []float64{span.From, span.To}
	if len(times) == 1 {
		name = map[bool]string{true: "skip the first", false: "trim"}[keeps == (span.To == 0)] // "keep only after 2 s"
		o.edit.args.numbers = []float64{max(span.From, span.To)}
	}
	if !keeps && !cuts && len(times) == 1 {
		return o, false
	}
	o.edit.operation = meant(name).edit
	o.at, o.given = times[0], seconds
	drop(instruction, func(p part) bool { return p.class != named })
	instruction[o.at].class, instruction[o.at].means = named, meant(name)
	return o, true
}

// isTimely reports whether a word may stand next to the seconds to which a change is limited.
func isTimely(word string) bool {
	return in("spans", word) || in("sinces", word) || in("untils", word) || in("ends", word) || in("tos", word) || units()[word] == seconds
}

func isSecond(word string) bool { return units()[word] == seconds }

// precedes reports whether a word from a list is the last one before a part, apart from articles.
func precedes(list string, instruction []part, at int) bool {
	for at--; at > 0 && in("articles", instruction[at].first.text) && !in(list, instruction[at].first.text); at-- {
	}
	return at >= 0 && in(list, instruction[at].last.text)
}

// boxIn returns the color of the box that an instruction asks for, as in "on a red box", or "". It drops these words.
// It runs before the colors are spread.
func boxIn(instruction []part) string {
	at := slices.IndexFunc(instruction, func(p part) bool { return in("boxes", p.first.text) && p.class == content })
	if at < 0 {
		return ""
	}
	box := "black"
	for near := max(0, at-1); near <= min(at+1, len(instruction)-1); near++ {
		p := &instruction[near]
		if m := p.means.modifier; m != nil && m.isColor() {
			box = m.name
		} else if near != at {
			continue
		}
		p.class, p.means = filler, meaning{}
	}
	return box
}

// isSpan reports whether an edit keeps the first, the last or the middle seconds.
func (o *operation) isSpan() bool { return o.name == "trim" || o.name == "last" || o.name == middle }

// segment reports whether another change applies only to the seconds that the phrase names: "mute the first 3 seconds",
// "slow motion for the last 2 seconds".
func segment(instruction []part, at int) bool {
	before := instruction[:at]
	for len(before) > 1 && in("articles", before[len(before)-1].first.text) {
		before = before[:len(before)-1]
	}
	if len(before) > 1 && in("purposes", before[len(before)-1].first.text) {
		return true
	}
	first := instruction[at].first.text
	if len(instruction[at].means.phrase) > 2 && !isUnspaced([]rune(first)[0]) || in("keeps", first) {
		return false
	}
	changes := func(p part) bool {
		return p.means.look != nil || p.means.modifier != nil || p.means.edit != nil && !(p.means.edit.needs && p.means.edit.takes&seconds != 0) && p.means.edit.name != "crop"
	}
	ends := func(p part) bool { return p.class == joiner || in("finals", p.first.text) || in("keeps", p.first.text) }
	for i := at - 1; i >= 0 && (instruction[i].class != joiner || in("whens", first)); i-- {
		if changes(instruction[i]) {
			return true
		}
	}
	after := slices.IndexFunc(instruction[at+1:], func(p part) bool { return changes(p) || ends(p) })
	return after >= 0 && changes(instruction[at+1+after])
}

// freeze makes an edit freeze the frame of a moment instead of the last one, if an instruction names the moment: "freeze
// at 2 s for one second".
func (o *ordered) freeze(instruction []part) {
	var at, lasts []float64
	for i, p := range instruction {
		if len(p.arguments) == 0 || p.arguments[0].kinds&seconds == 0 {
			continue
		}
		var a arguments
		p.arguments[0].set(&a)
		if precedes("purposes", instruction, i) {
			lasts = append(lasts, a.numbers...)
		} else {
			at = append(at, a.numbers...)
		}
	}
	if moment := slices.ContainsFunc(instruction, func(p part) bool { return in("ats", p.last.text) }); len(at) > 0 && (len(lasts) > 0 || len(at) > 1 || moment) {
		o.edit.operation = meant(freezeAt).edit
		o.edit.args.numbers = append(at[:min(2, len(at))], lasts...)
	}
}

// maxTitles limits how many texts a prompt can write.
const maxTitles = 4

// ordered is an edit whose arguments are still being collected.
type ordered struct {
	edit Edit
	// at is the index of the phrase. given is the set of argument kinds that the edit already has.
	at    int
	given kinds
	// limits means that the edit only says which seconds the others are limited to.
	limits bool
}

// inert reports whether a meaning is a phrase that names no edit, such as "comic sans".
func (m meaning) inert() bool { return m.look == nil && m.edit == nil && m.modifier == nil }

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

// spread gives a part's arguments to the edit before it or, if that does not take them or if an "and" lies between, to
// the edit after it.
func spread(instruction []part, at int, found []ordered, modified bool) {
	p := &instruction[at]
	if p.means.edit != nil {
		return
	}
	given, shade, from := p.arguments, "", at
	if m := p.means.modifier; m != nil && m.isColor() {
		shade, from = shadeAt(instruction, at)
		given = []argument{{paint, func(a *arguments) { a.color = shade + m.name }}}
	}
	for _, a := range given {
		next := 0
		for next < len(found) && found[next].at < at {
			next++
		}
		before := next - 1
		for before >= 0 && found[before].limits && a.kinds&seconds == 0 && (a.kinds&share == 0 || found[before].at+1 < at) {
			before--
		}
		nearest := []int{before, next}
		if next > 0 && count(instruction[found[next-1].at:at], joiner) > 0 {
			nearest = []int{next, before}
		}
		timed := a.kinds&share != 0 && precedes("durings", instruction, at) || a.kinds == angle|seconds|factor && (precedes("sinces", instruction, at) || precedes("untils", instruction, at) ||
			precedes("tos", instruction, at) && slices.ContainsFunc(instruction[:at], func(p part) bool { return in("sinces", p.first.text) })) // "from 1 to 2 s"
		for _, n := range nearest {
			if n >= 0 && n < len(found) && (timed && found[n].edit.takes&seconds == 0 || a.kinds == share && found[n].at+1 < at) {
				continue
			}
			if n >= 0 && n < len(found) && (found[n].takes(a) || a.kinds == ratio && found[n].edit.takes&ratio != 0) {
				found[n].give(a)
				if found[n].at < at && in("tos", instruction[at-1].first.text) {
					found[n].edit.args.absolute = true
				}
				instruction[from].class, instruction[from].means = filler, meaning{}
				p.class, p.means = filler, meaning{}
				return
			}
		}
		if a.kinds&factor != 0 && p.class == content {
			var by arguments
			a.set(&by)
			if by.percent {
				p.strength = max(0.25, min(by.number(30)/30, 2))
			} else if by.unit == factor || by.unit == 0 && by.number(1) > 1 && by.number(1) <= 10 {
				p.strength = 1.6
			}
			if p.strength != 0 && modified {
				p.class = filler
			}
		}
	}
}

// shadeAt returns a color's shade, such as "light ", and the index of the word for it, or of the color.
func shadeAt(instruction []part, at int) (shade string, from int) {
	for _, i := range []int{at, at - 1, at + 1} {
		if at < 0 || i < 0 || i >= len(instruction) {
			continue
		}
		switch word := instruction[i].first.text; {
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

// isObject reports whether the phrase is about an object that the prompt names next: "flip the car".
func isObject(instruction []part, at int, e Edit) bool {
	for _, p := range instruction[at+1:] {
		switch {
		case in("adverbs", p.first.text):
		case p.class == content && !(e.Crops() && isPersonWord(p)):
			return true
		case p.class == filler && len(p.arguments) == 0 && !p.whole:
		default:
			return false
		}
	}
	return false
}
