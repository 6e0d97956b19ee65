package look

import (
	"cmp"
	"slices"
	"strings"
)

type Result struct {
	// Understood lists the looks and changes that are applied, in that order.
	Understood []string
	// Ignored lists the ignored parts of the prompt, verbatim and in order.
	Ignored []string
	// Areas lists the looks and changes that apply to one area, such as "watercolor (background)".
	Areas []string
	// Edits lists the ordinary edits, in the order of application.
	Edits []Edit
	// Limited is true if the looks and changes apply only to a part of the clip.
	Limited bool
	explained
	// Empty is true if the prompt has no words. Declined is true if it only asks to keep things unchanged.
	Empty, Declined bool
}

// explained has the ignored words without a meaning, the topic of the ignored parts ("sound", "size", "text", "time" or
// ""), and the prompt's language if Read does not know it.
type explained struct {
	Unknown         []string
	Topic, Language string
}

// Read returns how a prompt is understood. Words for which the function `known` returns true are handled by the
// caller and not listed as ignored. known may be nil.
func Read(prompt string, known func(word string) bool) Result {
	return newRequest(maxMoods).read(prompt, known).result()
}

func (asked request) result() Result {
	slices.SortStableFunc(asked.edits, func(a, b Edit) int { return a.rank - b.rank })
	r := Result{
		Understood: asked.names(), Ignored: asked.ignored, Edits: asked.edits, Empty: asked.empty, Declined: asked.declined,
		explained: asked.explained, Limited: asked.span != Span{},
	}
	for area, name := range areaNames {
		for _, wish := range asked.parts[area].names() {
			r.Areas = append(r.Areas, wish+" ("+name+")")
		}
	}
	return r
}

type class int

const (
	// content is a word that is not in the lexicon.
	content class = iota
	// named is a lexicon phrase, or a word that the caller handles.
	named
	filler
	joiner
	// placing, turning, thing and negation start an instruction. refusal cancels an entire instruction.
	placing
	turning
	thing
	negation
	refusal
)

// part is a word in a prompt, or a lexicon phrase.
type part struct {
	class       class
	first, last token
	// means is the meaning of a lexicon phrase. It is zero for words that the caller handles.
	means meaning
	// arguments are for an ordinary edit. strength is for a modifier, or 0.
	arguments []argument
	strength  float64
	// alone is true if the phrase may name an object in the picture instead.
	alone bool
	// whole is true for words that refer to the entire picture. scope is true for words that make
	// an adjacent color apply to the entire picture.
	whole, scope bool
	// spared is the area that the words exclude, as in "everything but me", or Whole.
	spared Area
}

func parts(prompt string, known func(word string) bool) []part {
	tokens := tokenize(prompt)
	vocabulary := learned()
	vocabulary.mend(tokens)
	texts := make([]string, len(tokens))
	for i, t := range tokens {
		texts[i] = t.text
	}
	found := make([]part, 0, len(tokens))
	for at := 0; at < len(tokens); {
		if text, end := quotedAt(prompt, found, tokens[at:]); end > 0 && (announces(found) || vocabulary.announced(tokens[at:], end)) {
			p := part{class: named, first: tokens[at], means: vocabulary.meanings["title"][0]}
			if len(found) > 0 {
				p.first.clause = found[len(found)-1].last.clause
			}
			p.arguments = []argument{{quotation, func(a *arguments) { a.text = text }}}
			inside := tokenize(text + " x")
			shift := p.first.clause - tokens[at].clause - inside[len(inside)-1].clause
			for ; at < len(tokens) && tokens[at].from < end; at++ {
				p.last = tokens[at]
			}
			p.last.clause = p.first.clause
			for i := range tokens[at:] { // punctuation within the quotation ends no clause
				tokens[at+i].clause += shift
			}
			found = append(found, p)
			continue
		}
		var means meaning
		a, taken := argumentAt(prompt, tokens[at:])
		length := 1
		for _, m := range vocabulary.meanings[texts[at]] {
			if n := match(texts[at:], m.phrase); n > 0 && len(m.phrase) > len(means.phrase) &&
				tokens[at+n-1].clause == tokens[at].clause && a.kinds != pixels &&
				!(in("halves", m.phrase[len(m.phrase)-1]) && at+n < len(texts) && isSecond(texts[at+n])) { // "first half second"
				means, length = m, n
			}
		}
		p := part{first: tokens[at], means: means, strength: degree(texts[at])}
		moot := in("moot", strings.Join(means.phrase, " "))
		if means.inert() {
			p.means, means = meaning{}, meaning{}
		}
		if len(means.phrase) > 0 {
			p.class = named
			for i := range length {
				if a, _ := argumentAt(prompt, tokens[at+i:at+length]); a.set != nil && a.kinds != share { // not "a quarter turn"
					p.arguments = append(p.arguments, a)
				}
				if !slices.Contains(means.phrase, texts[at+i]) {
					p.strength = max(p.strength, degree(texts[at+i])) // "turn it down a bit"
				}
				p.whole = p.whole || in("wholes", texts[at+i])
			}
			p.alone = in("objectlike", strings.Join(means.phrase, " ")) && !isStyle(texts, at, at+length)
			if in("unseens", strings.Join(means.phrase, " ")) {
				p.strength = 2.2
			}
		} else {
			p.class = classOf(texts[at])
			if length > 1 || len(found) > 0 && in("nouns", texts[at]) && found[len(found)-1].describes() {
				p.class = map[bool]class{true: filler, false: content}[moot || length == 1 && in("wholes", texts[at])] // "comic sans", "her dress", "the clip"
			}
			if taken > 0 {
				if len(found) > 0 && units()[found[len(found)-1].first.text] == seconds && a.kinds&seconds != 0 {
					a.kinds = seconds // "second 2"
				}
				p.arguments, length = []argument{a}, taken
			}
			switch next := at + 1; {
			case next == len(texts):
			case texts[at] == "no" && in("afterNo", texts[next]):
				p.class = filler
			case in("keeps", texts[at]) && isTime(prompt, tokens[next:]):
				p.class = filler // "keep only 1 s to 2 s"
			case texts[at] == "ne" && slices.Contains(texts[next:min(len(texts), next+3)], "que"), texts[at] == "غير" && at == 0:
				p.class = filler // "ne garde que" means "only keep"
			case texts[at] == "और" && at > 0 && in("finalVerbs", texts[at-1]):
				p.class = joiner // "and", not "more"
			case texts[at] == "leave" && in("afterLeave", texts[next]):
				p.class = thing
			}
			if p.class == content && known != nil && known(strings.ToLower(prompt[tokens[at].from:tokens[at].to])) {
				p.class = named
			}
		}
		p.whole, p.scope = p.whole || tokens[at].whole || in("wholes", texts[at]), in("scopes", texts[at]) && p.class != content
		p.last = tokens[at+length-1]
		found = append(found, p)
		at += length
	}
	return found
}

// isTime reports whether tokens start with seconds, after words such as "only".
func isTime(prompt string, tokens []token) bool {
	timed := false
	for len(tokens) > 1 && (classOf(tokens[0].text) == filler || in("onlys", tokens[0].text) || in("ordinals", tokens[0].text) || in("keeps", tokens[0].text) || isTimely(tokens[0].text)) {
		timed = timed || units()[tokens[0].text] == seconds
		tokens = tokens[1:]
	}
	a, _ := argumentAt(prompt, tokens)
	return a.kinds&share != 0 || a.kinds&seconds != 0 && (timed || slices.ContainsFunc(tokens[:min(len(tokens), 5)], func(t token) bool {
		a, _ := argumentAt(prompt, []token{t})
		return units()[t.text] == seconds || a.kinds == seconds
	}))
}

// describes reports whether a noun follows a part: "her", "the" or "red".
func (p part) describes() bool {
	m := p.means.modifier
	return in("articles", p.last.text) || in("owners", p.last.text) || m != nil && m.isColor()
}

// names reports whether a part's phrase has a word from a list.
func (p part) names(list string) bool {
	return slices.ContainsFunc(p.means.phrase, func(word string) bool { return in(list, word) })
}

// writes reports whether a part is the text that an edit draws.
func (p part) writes() bool { return len(p.arguments) > 0 && p.arguments[0].kinds == quotation }

// isStyle reports whether the words in [first, next) are requested as a style.
func isStyle(texts []string, first, next int) bool {
	if next < len(texts) && in("styleCues", texts[next]) && !slices.Contains([]string{"as", "into", "like"}, texts[next]) {
		return true
	}
	for first--; first >= 0 && in("articles", texts[first]); first-- {
	}
	return first >= 0 && in("styleCues", texts[first]) && (texts[first] != "of" || first > 0 && in("styleCues", texts[first-1]))
}

func classOf(word string) class {
	for _, c := range []struct {
		list  string
		class class
	}{
		{"negations", negation}, {"refusals", refusal}, {"things", thing}, {"turnings", turning},
		{"placings", placing}, {"joiners", joiner}, {"fillers", filler}, {"wholes", filler},
	} {
		if in(c.list, word) {
			return c.class
		}
	}
	return content
}

// instructions splits a prompt's parts into instructions: at punctuation, and before words that
// start one. A negation applies until the end of its clause.
func instructions(all []part) [][]part {
	all = slices.Clone(all)
	var split [][]part
	start := 0
	for i, p := range all {
		begins := i == 0 || p.first.clause != all[i-1].last.clause &&
			!((in("insides", p.first.text) || len(p.arguments) > 0 && p.arguments[0].kinds == scale) && slices.ContainsFunc(split[len(split)-1], part.writes))
		if !begins {
			current := split[len(split)-1]
			joined := all[i-1].class == joiner
			switch p.class {
			case placing, turning, thing:
				begins = (current[0].class != negation || joined || sparedBy(current) != Whole) && !in("finals", p.first.text)
			case negation:
				begins = true
			default:
				writes := p.means.edit != nil && !p.means.edit.isGround() && about(current) == Background
				rest := segmentAt(all, i)
				begins = joined && (writes || setsGround(current) && changesAll(rest) || setsGround(rest) && changesAll(current) || sparedBy(current) != Whole || isColored(current) || current[0].class == negation && in("keeps", current[0].first.text) ||
					about(all[i:])+about(current) == Person+Background)
			}
		}
		if begins {
			split, start = append(split, nil), i
		}
		split[len(split)-1] = all[start : i+1]
	}
	// letters reports whether an instruction only gives a text's position or color: "at the top".
	letters := func(instruction []part) bool {
		return !slices.ContainsFunc(instruction, func(p part) bool {
			return p.class != filler && (len(p.arguments) == 0 || p.arguments[0].kinds&place == 0) && (p.means.modifier == nil || !p.means.modifier.isColor())
		})
	}
	writes := func(instruction []part) bool { return slices.ContainsFunc(instruction, part.writes) }
	for i := len(split) - 2; i >= 0; i-- {
		if letters(split[i]) && writes(split[i+1]) || letters(split[i+1]) && writes(split[i]) || isWhen(split[i]) || isWhen(split[i+1]) { // "at the top, add the text …"
			split[i] = slices.Concat(split[i], split[i+1])
			split = slices.Delete(split, i+1, i+2)
			i = min(i+1, len(split)-1) // more may follow
		}
	}
	return split
}

// setsGround reports whether parts give the background a color or a scene, or remove it. changesAll reports whether they
// change the picture without naming an area.
func setsGround(parts []part) bool {
	at := slices.IndexFunc(parts, func(p part) bool { return p.means.edit != nil && p.means.edit.isGround() })
	return at >= 0 && (parts[at].means.edit.name == removed || removes(parts, at) || slices.ContainsFunc(parts, func(p part) bool {
		return p.means.modifier != nil && p.means.modifier.isColor()
	}))
}

func changesAll(parts []part) bool {
	return about(parts) == Whole && slices.ContainsFunc(parts, func(p part) bool {
		return p.means.look != nil || p.means.modifier != nil && !p.means.modifier.isColor()
	})
}

func count(parts []part, c class) int {
	n := 0
	for _, p := range parts {
		if p.class == c {
			n++
		}
	}
	return n
}

// names reports whether an instruction names an object that a color before or after it may describe.
func names(instruction []part) bool {
	return instruction[0].class != negation && count(instruction, content) > 0
}

// isLocal reports whether an instruction is about an object in the picture: it adds an object that
// is not in the lexicon, or turns such an object into something.
func isLocal(instruction []part) bool {
	unknown := count(instruction, content) > 0
	switch instruction[0].class {
	case placing:
		return unknown
	case turning:
		for i, p := range instruction[1:] {
			switch {
			case p.whole && !(i+2 < len(instruction) && instruction[i+2].first.text == "of"), p.class == named:
				return false
			case p.class == content:
				return true
			}
		}
	}
	return false
}

// isBare reports whether an instruction is only a color or a degree, like "a red" in "a red, leather jacket".
func isBare(instruction []part) bool {
	modifiers := 0
	for _, p := range instruction {
		switch {
		case p.whole, p.scope, p.means.modifier == nil && p.class != filler && p.class != joiner:
			return false
		case p.means.modifier != nil:
			modifiers++
		}
	}
	return modifiers > 0
}

// plain turns parts that are not meant literally into fillers: emoji next to words that ask for something, and the
// words that say whom the result is for.
func plain(all []part) {
	worded := slices.ContainsFunc(all, func(p part) bool { return p.class == named && !strings.ContainsAny(emoji, p.first.text) })
	for i, purpose := 0, false; i < len(all); i++ {
		p := &all[i]
		if purpose = purpose && p.class <= filler && p.means.inert() && p.first.clause == all[i-1].last.clause; purpose && p.class == content && len(p.arguments) == 0 ||
			p.class == content && i+2 < len(all) && all[i+1].class == joiner && all[i+2].first.text == "everything" || // "the sky and everything"
			i > 0 && p.class == content && isPersonWord(*p) && (all[i-1].first.text == "of" || i > 1 && all[i-2].first.text == "of") {
			p.class = filler
		}
		if strings.HasPrefix(p.first.text, "colo") && i > 1 && p.class == filler && has(segmentAt(all[:i], i-1), "keeps") && about(segmentAt(all, i)) == Whole {
			p.class = content // "keep a bit of the colors"
		}
		if in("kindas", p.first.text) && i+1 < len(all) && !all[i+1].means.inert() {
			p.class, p.strength, p.arguments = filler, 0.5, nil
		}
		if clause := segmentAt(all, i); worded && p.class == content && has(clause, "pasts") && !has(clause, "wishes") && !slices.ContainsFunc(clause, func(p part) bool {
			return p.class > filler || !p.means.inert()
		}) {
			p.class = filler // "my hands were shaking"
		}
		purpose = purpose || i > 0 && (in("purposes", p.first.text) && all[i-1].class != negation)
		if i > 0 && in("afterSo", p.first.text) && all[i-1].first.text == "so" || in("reasons", p.first.text) {
			ignorePurpose(all[i:])
		}
		if worded && p.class == named && strings.ContainsAny(emoji, p.first.text) {
			p.class, p.means = filler, meaning{}
		}
	}
}

// ignorePurpose turns the rest of a clause after "so" or "because" into fillers, unless it requests a change: "so the tower is on the
// right", but not "so the sky is red".
func ignorePurpose(rest []part) {
	for i, p := range rest {
		if p.class > filler || p.first.clause != rest[0].first.clause {
			rest = rest[:i]
			break
		} else if reason := p.means.edit != nil && in("reasons", rest[0].first.text); reason && !in("states", rest[max(0, i-1)].last.text) {
			rest = rest[:i] // but not "because it is slow"
			break
		} else if !reason && !p.means.inert() || len(p.arguments) > 0 && p.arguments[0].kinds&seconds != 0 {
			return
		}
	}
	for i := range rest {
		rest[i].class, rest[i].means, rest[i].arguments = filler, meaning{}, nil
	}
}

// cures maps a fault of a picture to the opposite change.
var cures = map[string]string{
	"muted": "vivid", "vivid": "muted", "low contrast": "contrast", "contrast": "low contrast", "fog": "contrast",
	"blur": "sharp", "soft": "sharp", "sharp": "soft", "grainy": "denoise", "darker": "brighter", "brighter": "darker",
	"warmer": "colder", "colder": "warmer", "red": "less red", "orange": "colder", "yellow": "colder", "blue": "warmer",
	"gray": "vivid", "louder": "quieter", "quieter": "louder", "faster": "slow motion", "slow motion": "faster", "rotate": "rotate",
}

// cure replaces the faults that a prompt complains of with their cures: "it looks washed out" requests contrast, and
// "too yellow" colder colors. An excess without a cure has no meaning.
func cure(all []part) {
	for i := range all {
		p := &all[i]
		phrase, name, excess := strings.Join(p.means.phrase, " "), cures[p.means.name()], excessive(all, i) || unwanted(all, i)
		switch {
		case excess && name == "" && !p.means.inert():
			p.class, p.means = content, meaning{}
			continue
		case name == "", !excess && (!in("faults", phrase) || !complains(all[:i], p.first.clause) && !answered(all, i, name)):
			continue
		case in("pales", phrase):
			name = "contrast"
		}
		p.means.look, p.means.modifier, p.means.edit = nil, meant(name).modifier, meant(name).edit
		for k := i - 1; k >= 0 && all[k].class == filler && all[k].last.clause == p.first.clause; k-- {
			if all[k].strength > 1 && !excess {
				p.strength = all[k].strength // "it is very dark"
			}
			all[k].strength = 0
		}
		if name == "rotate" {
			p.arguments = append(p.arguments, argument{angle, func(a *arguments) { a.back = true }})
			drop(all[:i], func(p part) bool { return in("tilts", p.first.text) }) // "straighten it, it's tilted by 3°"
		}
	}
}

// excessive reports whether a word such as "too" belongs to a part. It turns that word into a filler.
func excessive(all []part, at int) bool {
	p := all[at]
	for i := at - 1; i >= 0 && all[i].last.clause == p.first.clause && p.class == named && (all[i].means.inert() && i >= at-3); i-- {
		word, stated := all[i].last.text, complains(all[:i], p.first.clause)
		pair := all[max(0, i-1)].last.text + " " + word
		if in("toos", word) || in("toos", pair) || (in("zus", word) && (stated || i == 0 || all[i-1].last.clause != p.first.clause)) ||
			in("verys", word) && stated {
			all[i].class, all[i].strength = filler, 0
			return true
		}
		if all[i].class != filler && !in("toos", pair) {
			break
		}
	}
	after := ""
	for _, next := range all[at+1 : min(len(all), at+4)] {
		after += next.first.text
	}
	return p.class == named && (strings.Contains(after, "すぎ") || strings.Contains(after, "過ぎ"))
}

// unwanted reports whether a clause only asks to remove a fault: "take out the grain". It turns the verb into a filler.
func unwanted(all []part, at int) bool {
	near := segmentAt(all, at)
	removes := has(near, "removers") || has(near, "takes") && has(near, "outs")
	if !removes || !in("removables", all[at].means.name()) || count(near, content) > 0 || count(near, named) > 1 {
		return false
	}
	drop(near, func(p part) bool { return p.class == thing })
	return true
}

// splash turns a change to black and white into one that keeps colors, if the prompt exempts them: "black and white except
// red".
func splash(all []part) {
	whole := slices.ContainsFunc(all, func(p part) bool { return p.whole || in("exceptions", p.first.text) })
	at := slices.IndexFunc(all, func(p part) bool {
		name := p.means.name()
		return name == "grayscale" || name == personColor || name == "gray" && whole || p.first.text == "desaturate" && whole
	})
	var kept []string
	last := -1
	for i, p := range all {
		m := p.means.modifier
		if at < 0 || i == at || m == nil || hues[m.name] == 0 || all[at].means.name() != personColor && !exempt(all, i) {
			continue
		}
		kept, last = append(kept, m.name), i
		for k := i - 1; k >= 0 && all[k].last.clause == p.first.clause && (all[k].class == filler || isExempting(all[k]) || isPersonWord(all[k])); k-- {
			all[k].class, all[k].means = filler, meaning{}
		}
		for k := i; k < len(all) && all[k].first.clause == p.first.clause && (k == i || all[k].class == content || isExempting(all[k])); k++ {
			all[k].class, all[k].means, all[k].scope = filler, meaning{}, false // "the yellow coat"
		}
	}
	if last >= 0 {
		all[at].class, all[at].means.edit, all[at].means.look, all[at].means.modifier = named, nil, nil, keeping(kept)
	}
}

func isExempting(p part) bool {
	return in("exceptions", p.first.text) || in("keeps", p.first.text) || in("onlys", p.first.text) || in("buts", p.first.text)
}

// exempt reports whether the words around a color exempt it from a change.
func exempt(all []part, at int) bool {
	for _, step := range []int{-1, 1} {
		for i := at + step; i >= 0 && i < len(all) && all[i].first.clause == all[at].first.clause && all[i].means.inert(); i += step {
			if isExempting(all[i]) {
				return true
			}
		}
	}
	return false
}

// answered reports whether a clause names only a fault, and another clause the cure: "a bit blurry, sharpen it".
func answered(all []part, at int, cure string) bool {
	same := func(p part) bool { return p.first.clause == all[at].first.clause }
	return slices.ContainsFunc(all, func(p part) bool { return p.means.name() == cure && !same(p) }) &&
		!slices.ContainsFunc(all, func(p part) bool { return same(p) && p.class != filler && p.first != all[at].first })
}

// complains reports whether the words of a clause make a complaint of the fault that follows them.
func complains(before []part, clause int) (stated bool) {
	for i := len(before) - 1; i >= 0 && before[i].last.clause == clause && !before[len(before)-1].describes(); i-- {
		switch word := before[i].last.text; {
		case in("complaints", word), in("complaints", before[max(0, i-1)].last.text+" "+word):
			return true
		case in("wishes", word), stated && word == "so":
			return false
		case in("states", word):
			stated = true
		}
	}
	return stated
}

// maxWords limits the words that are read, because reading compares each word with many others.
const maxWords = 400

func (asked request) read(prompt string, known func(word string) bool) request {
	rest := ""
	if words := tokenize(prompt); len(words) > maxWords {
		prompt, rest = prompt[:words[maxWords].from], prompt[words[maxWords].from:]
	}
	all := parts(prompt, known)
	if aim, rest, found := strings.Cut(prompt, ": "); found && isAim(parts(aim, known)) && !strings.ContainsAny(aim, "\"“„«「『") {
		all = parts(aim+", "+rest, known) // "make me pop: blur the background"
	}
	asked.empty = strings.TrimSpace(prompt) == ""
	plain(all)
	cure(all)
	splash(all)
	spare(all)
	split := instructions(all)
	areas := asked.areas(prompt, split)
	spans := make([]Span, len(split))
	for i, instruction := range split {
		spans[i] = asked.order(prompt, instruction)
		_, frozen := Find(asked.edits, freezeAt)
		if frozen || i > 0 && spans[i-1] != (Span{}) && spans[i] == (Span{}) {
			drop(instruction, func(p part) bool { return in("afterwards", p.first.text) }) // "then back to normal"
		}
		for k, changed := 0, ""; k < len(instruction) && spans[i] != (Span{}); k++ {
			if name := instruction[k].means.name(); name != "" && cures[changed] == name {
				drop(instruction[k:k+1], func(part) bool { return true }) // "blur the first second, then go sharp"
			} else if name != "" {
				changed = name
			}
		}
	}
	asked.pad()
	kept, other := 0, 0
	var generic [Person + 1]*entry
	var ignored []part
	for i, instruction := range split {
		beside := areas[i] == Whole && isBare(instruction) &&
			(i > 0 && names(split[i-1]) || i+1 < len(split) && names(split[i+1]))
		switch {
		case instruction[0].class == negation || count(instruction, refusal) > 0:
			if kept++; excludes(instruction) && len(split) > 1 {
				other++
				ignored = append(ignored, instruction...)
			}
			continue
		case !hasEdit(instruction) && (instruction[0].class == thing || known == nil && isLocal(instruction) || beside):
			other++
			ignored = append(ignored, slices.DeleteFunc(slices.Clone(instruction), func(p part) bool {
				return p.class == named && len(p.means.phrase) == 0 // the caller handles it
			})...)
			continue
		}
		to := asked.of(areas[i])
		changes := slices.ContainsFunc(instruction, func(p part) bool { return p.means.look != nil || p.means.modifier != nil })
		if changes && (to.follows() && to.span != spans[i] || spans[i] != (Span{}) && areas[i] != Whole) {
			other++
			ignored = append(ignored, instruction...) // all changes of an area share a span
			continue
		} else if changes {
			to.span = spans[i]
		}
		followed, left := to.follow(instruction, &generic[areas[i]])
		ignored = append(ignored, left...)
		if followed || len(left) > 0 {
			other++
		}
	}
	for area, found := range generic {
		if to := asked.of(Area(area)); found != nil && (found.medium || len(to.moods) == 0) {
			to.add(found)
		}
	}
	asked.declined = kept > 0 && other == 0
	dropped := map[int]bool{}
	for _, p := range ignored {
		dropped[p.first.from] = true
	}
	asked.ignored = quote(prompt, all, dropped)
	if rest != "" {
		asked.ignored = append(asked.ignored, rest)
	}
	asked.explain(prompt, all, dropped)
	return asked
}

// pad makes a crop keep the whole picture if the prompt asks for that: "square, but don't crop anything".
func (asked *request) pad() {
	at := slices.IndexFunc(asked.edits, func(e Edit) bool { return e.name == padded })
	if at < 0 {
		return
	}
	crop, crops := Find(asked.edits, "crop")
	bars, _ := Find(asked.edits, "letterbox")
	asked.edits[at].args.blurred = asked.blurred
	wanted := &asked.edits[at].args.wanted
	if *wanted = cmp.Or(*wanted, crop.args.wanted, bars.args.wanted); *wanted == 0 && crops {
		*wanted = 1
	}
	shapeless := *wanted == 0 // "watercolor without cropping"
	asked.edits = slices.DeleteFunc(asked.edits, func(e Edit) bool {
		return e.name == "crop" || e.name == padded && shapeless || e.name == "letterbox" && !shapeless
	})
}

// explain finds the unknown words of a prompt, its language and the topic of its ignored parts.
func (asked *request) explain(prompt string, all []part, dropped map[int]bool) {
	found := map[string]int{}
	for _, p := range all {
		if !dropped[p.first.from] {
			continue
		}
		for _, topic := range []string{"sound", "size", "text", "time"} {
			if asked.Topic == "" && in(topic, p.first.text) {
				asked.Topic = topic
			}
		}
		if p.class != content || len(p.arguments) > 0 || isPersonWord(p) {
			continue
		}
		if len(asked.Unknown) < maxQuotes && !isUnspaced([]rune(p.first.text)[0]) {
			asked.Unknown = append(asked.Unknown, shorten(prompt[p.first.from:p.last.to]))
		}
		for _, language := range []string{"Dutch", "Indonesian", "Polish", "Swedish", "Turkish", "Vietnamese"} {
			if in(language, p.first.text) {
				found[language]++
			}
			if found[language] > max(1, found[asked.Language]) {
				asked.Language = language
			}
		}
	}
}

// excludes reports whether an instruction excludes an object or a color from the changes: "except the dog", "keep the
// red".
func excludes(instruction []part) bool {
	first := instruction[0].first.text
	return (in("exceptions", first) || in("keeps", first)) && slices.ContainsFunc(instruction[1:], func(p part) bool {
		return p.class == content && !in("changing", p.first.text) && !in("sounds", p.first.text) && areaOf(p) == Whole || p.means.modifier != nil && p.means.modifier.isColor()
	})
}

func hasEdit(instruction []part) bool {
	return slices.ContainsFunc(instruction, func(p part) bool { return p.means.edit != nil })
}

// isAim reports whether the words before a colon ask for nothing known.
func isAim(all []part) bool {
	return count(all, content) > 0 && count(all, named) == 0 && all[0].class != placing && all[0].class != thing
}

// follow adds the looks and modifiers that an instruction requests, and returns the parts that it ignores. It sets
// generic to the first generic look.
func (asked *wishes) follow(instruction []part, generic **entry) (followed bool, left []part) {
	unknown := count(instruction, content) > 0
	scoped := slices.ContainsFunc(instruction, func(p part) bool { return p.scope })
	for i, p := range instruction {
		means := p.means
		switch {
		case p.class == content && i > 0 && instruction[i-1].means.look != nil && in("afterLook", p.first.text):
		case p.class == content:
			left = append(left, p)
		case len(means.phrase) == 0:
			followed = followed || p.class == named
		case means.edit != nil:
			followed = true
		case isUntimed(instruction), unknown && (p.alone || means.modifier != nil && !scoped && !separate(instruction, i)):
			left = append(left, p)
		case means.generic:
			followed = true
			if *generic == nil {
				*generic = means.look
			}
		case means.look != nil:
			asked.faint = asked.faint || strengthAt(instruction, i) < 1
			if followed = true; !asked.add(means.look) {
				left = append(left, p)
			}
		default:
			if followed = true; !asked.modify(means.modifier, strengthAt(instruction, i)) {
				left = append(left, p)
			}
		}
	}
	return followed, left
}

// segmentAt returns the parts between the words for "and" around an index.
func segmentAt(instruction []part, at int) []part {
	from, to, clause := at, at, instruction[at].first.clause
	for ; from > 0 && instruction[from-1].class != joiner && instruction[from-1].last.clause == clause; from-- {
	}
	for ; to < len(instruction) && instruction[to].class != joiner && instruction[to].first.clause == clause; to++ {
	}
	return instruction[from:to]
}

// has reports whether one of the parts starts with a word from a list.
func has(parts []part, list string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return in(list, p.first.text) })
}

// separate reports whether a change of the whole picture is separate from the unknown words: "make it darker and fix
// the car", or "make it darker kthx", but not "make it darker around the edges".
func separate(instruction []part, at int) bool {
	near := segmentAt(instruction, at)
	before := at - 1
	for before >= 0 && instruction[before].class == filler && !instruction[before].whole {
		before--
	}
	plain := count(near, content) == 0 || before >= 0 && instruction[before].whole &&
		!slices.ContainsFunc(near, func(p part) bool {
			return in("insides", p.first.text) || in("limits", p.first.text) || len(p.arguments) > 0
		})
	return plain && !instruction[at].means.modifier.isColor() && !in("articles", instruction[max(0, at-1)].first.text) &&
		slices.ContainsFunc(near, func(p part) bool { return p.whole })
}

// strengthAt returns a modifier's strength, which is given by the words before it or, if there are none, after it.
func strengthAt(instruction []part, at int) float64 {
	if s := instruction[at].strength; s != 0 {
		return s
	}
	for before := at - 1; before >= 0 && instruction[before].class == filler; before-- {
		if s := instruction[before].strength; s != 0 {
			return s
		}
	}
	for after := at + 1; after < len(instruction) && instruction[after].class == filler; after++ {
		if s := instruction[after].strength; s != 0 {
			if next := after + 1; next < len(instruction) && instruction[next].means.modifier != nil {
				break // the words belong to the next modifier
			}
			return s
		}
	}
	return 1
}

const (
	// These limit the number of quoted parts, and their length in code points.
	maxQuotes = 6
	maxQuote  = 60
)

// quote returns the ignored parts verbatim. Parts separated only by filler words within a clause become one quote.
func quote(prompt string, all []part, dropped map[int]bool) []string {
	var quotes []string
	from, to := -1, -1
	end := func() {
		if from >= 0 {
			quotes = append(quotes, shorten(strings.Join(strings.Fields(prompt[from:to]), " ")))
		}
		from = -1
	}
	for i, p := range all {
		plain := p.class == filler || p.class == joiner
		if i > 0 && p.first.clause != all[i-1].last.clause || !dropped[p.first.from] && !plain {
			end()
		}
		// A quote does not start or end with a filler word, unless the filler word starts an instruction.
		if dropped[p.first.from] && !plain {
			if from < 0 {
				from = p.first.from
			}
			to = p.last.to
		}
	}
	end()
	quotes = slices.DeleteFunc(quotes, func(q string) bool { return q == "" })
	return quotes[:min(len(quotes), maxQuotes)]
}

func shorten(text string) string {
	if points := []rune(text); len(points) > maxQuote {
		return strings.TrimSpace(string(points[:maxQuote])) + "…"
	}
	return text
}
