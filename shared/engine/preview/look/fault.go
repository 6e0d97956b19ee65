package look

import "strings"

// plain turns parts that are not meant literally into fillers.
func plain(all clause) {
	worded := all.any(func(p part) bool { return p.class == named && !isEmoji(p) })
	purpose := false // true after a word such as "for": "for my friends"
	for i := range all {
		p := &all[i]
		purpose = purpose && p.class <= filler && p.means.inert() && p.first.sentence == all[i-1].last.sentence
		switch {
		case purpose && p.class == content && len(p.arguments) == 0, isBeside(all, i):
			p.class = filler
		case isKept(all, i):
			p.class = content
		case receives(all, i):
			p.class, p.first.text, p.words = filler, "you", "you"
		case p.in("seems") && i > 0 && all[i-1].class == content && !all.has("fixes"):
			p.scope, p.whole = false, false // "my skin looks red"
		case p.in("kindas") && i+1 < len(all) && !all[i+1].means.inert():
			p.class, p.strength, p.arguments = filler, 0.5, nil
		}
		if worded && p.class == content && isStory(all.near(i)) {
			p.class = filler
		}
		purpose = purpose || i > 0 && p.in("purposes") && all[i-1].class != negation
		if i > 0 && p.in("afterSo") && all[i-1].in("sos") || p.in("reasons") {
			ignorePurpose(all[i:])
		}
		if worded && p.class == named && isEmoji(*p) {
			p.ignore()
		}
	}
}

// receives reports whether a word says who receives the result: "give me a watercolor look", "make me a pencil sketch".
func receives(all clause, at int) bool {
	other := func(p part) bool { return p.class == content && p.first != all[at].first }
	if at == 0 || !all[at].in("receivers") || all.near(at).any(other) {
		return false // "give me blue hair"
	}
	makes := all[at-1].in("makes") && at+1 < len(all) && all[at+1].in("articles")
	works := func(p part) bool { return p.in("works") || p.names("works") }
	return all[at-1].in("gives") || makes && all.near(at).any(works)
}

func isEmoji(p part) bool { return strings.ContainsAny(emoji, p.first.text) }

// isBeside reports whether a word names only an owner, or one of several objects: "the face of the man", "the sky and
// everything".
func isBeside(all clause, at int) bool {
	speaks := at+1 < len(all) && all[at+1].in("sounds") // "her voice"
	owns := isPersonWord(all[at]) && (speaks || all[max(0, at-2):at].has("ofs"))
	summed := at+2 < len(all) && all[at+1].class == joiner && all[at+2].in("everythings")
	return all[at].class == content && (owns || summed)
}

// isKept reports whether a clause wants to keep the colors: "keep a bit of the colors".
func isKept(all clause, at int) bool {
	return all[at].in("colorings") && at > 1 && all[at].class == filler &&
		clause(all[:at]).near(at-1).has("keeps") && about(all.near(at)) == Whole && !all.near(at).has("onlys")
}

// isStory reports whether a clause only says what happened, or compares: "my hands shook", "I look like a ghost".
func isStory(c clause) bool {
	acts := func(p part) bool { return p.class > filler || !p.means.inert() }
	at := c.find(func(p part) bool { return p.in("similes") })
	compares := at == 0 && c.has("pasts") || at > 1 && c[1:at].has("states") && !c[:at].has("wishes")
	return (compares || c.has("pasts") && !c.has("wishes")) && !c.any(acts)
}

// ignorePurpose turns the rest of a clause after "so" or "because" into fillers, unless it requests a change: "so the
// tower is on the right", but not "so the sky is red".
func ignorePurpose(rest clause) {
	reasons := rest[0].in("reasons")
	for i, p := range rest {
		edits := reasons && p.means.edit != nil
		switch {
		case p.class > filler, p.first.sentence != rest[0].first.sentence,
			edits && !in("states", rest[max(0, i-1)].last.text): // but not "because it is slow"
			rest = rest[:i]
		case !edits && !p.means.inert() && !rest[:i].has("pasts"), p.kinds()&seconds != 0:
			return // but not "because I filmed at night"
		default:
			continue
		}
		break
	}
	for i := range rest {
		rest[i].ignore()
		rest[i].arguments = nil
	}
}

// quality returns the list with the quality that a part names, such as "contrasts", or "".
func quality(p part) string {
	for list := range qualities {
		if in(list, p.words) {
			return list
		}
	}
	return ""
}

// measure replaces a complaint of a quality by its cure: "the contrast is too high" requests low contrast, and "not
// enough light" a brighter picture.
func measure(all clause) {
	for i := range all {
		list := quality(all[i])
		if list == "" {
			continue
		}
		if down, signed := signAfter(all, i); signed {
			all[i].class, all[i].means = named, meant(qualities[list][down])
			continue
		}
		near := all.near(i)
		high, low := near.rated()
		if !high && !low && near.count(negation) == 0 {
			continue
		}
		very := near.has("states") && (near.says("verys") || near.has("intenses"))
		too := very || near.says("toos") || near.says("zus") || near.says("excesses")
		lacks := near.count(negation) > 0 && near.says("enoughs")
		high, low = too && high, lacks || too && low
		if high == low || near.any(func(p part) bool { return p.first != all[i].first && !rates(p) }) {
			continue
		}
		for k := range near {
			near[k].ignore()
			near[k].strength, near[k].last.text = 0, "" // so that cure does not find "too"
		}
		all[i].class, all[i].means = named, meant(qualities[list][map[bool]int{high: 1}[true]])
	}
}

// rated reports whether the last word of a clause for an amount is high or low: "viel zu leise", "un peu trop fort".
func (c clause) rated() (high, low bool) {
	for _, p := range c {
		if inAny(p.words, "highs", "lows") {
			high, low = in("highs", p.words), in("lows", p.words)
		}
	}
	return high, low
}

// signAfter returns 1 if a percentage with a minus sign follows a part, and 0 for a plus sign: "contrast -20%".
func signAfter(all clause, at int) (down int, signed bool) {
	if at+1 == len(all) || all[at+1].kinds() != factor {
		return 0, false
	}
	var by arguments
	all[at+1].arguments[0].set(&by)
	return map[byte]int{'-': 1}[by.sign], by.percent && strings.IndexByte("+-", by.sign) >= 0
}

// rates reports whether a part may belong to a complaint of a quality.
func rates(p part) bool {
	return p.class == filler || p.class == negation || inAny(p.words, "highs", "lows", "toos", "enoughs", "states")
}

// cures maps a fault of a picture to the opposite change.
var cures = map[string]string{
	"muted": "vivid", "vivid": "muted", "low contrast": "contrast", "contrast": "low contrast", "fog": "contrast",
	"blur": "sharp", "soft": "sharp", "sharp": "soft", "grainy": "denoise", "darker": "brighter",
	"brighter": "darker", "warmer": "colder", "colder": "warmer", "red": "less red", "orange": "colder",
	"yellow": "colder", "blue": "warmer", "green": "less green", "gray": "vivid", "louder": "quieter",
	"quieter": "louder", "faster": "slow motion", "slow motion": "faster", "rotate": "rotate",
}

// cure replaces the faults that a prompt complains of with their cures: "it looks washed out" requests contrast, and
// "too yellow" colder colors. An excess without a cure has no meaning.
func cure(all clause) {
	mirrors, cured := all.any(func(p part) bool { return p.isEdit("mirror") }), -1
	for i := range all {
		p := &all[i]
		phrase, name := strings.Join(p.means.phrase, " "), cures[p.means.name()]
		paired := i > 1 && all[i-1].class == joiner && p.isColor() && (cured == i-2 || all[i-2].states()) // "dark and red"
		excess := excessive(all, i) || unwanted(all, i) || paired
		complained := complains(all[:i], p.first.sentence)
		switch {
		case mirrors && complained && (p.isEdit("mirror") || p.in("turneds")):
			near := all.near(i)
			near.drop(func(p part) bool { return p.class == content || p.in("turneds") || p.isEdit(Title) && !p.writes() })
			all.drop(func(p part) bool { return p.isEdit("rotate") && len(p.arguments) == 0 && p.first == p.last })
			continue
		case name == "" && !p.means.inert() && (excess || p.isColor() && isFault(all, i, phrase, name)):
			p.disown()
			continue
		case name == "", in("overdone", phrase), !excess && !isFault(all, i, phrase, name):
			continue
		case in("pales", phrase) && !all.near(i).has("colorings"):
			name = "contrast"
		}
		cured = i
		p.means.look, p.means.modifier, p.means.edit = nil, meant(name).modifier, meant(name).edit
		for k := i - 1; k >= 0 && all[k].class == filler && all[k].last.sentence == p.first.sentence; k-- {
			if all[k].strength > 1 && !excess {
				p.strength = all[k].strength // "it is very dark"
			}
			all[k].strength = 0
		}
		if name == "rotate" {
			p.arguments = append(p.arguments, argument{angle, func(a *arguments) { a.back = true }})
			clause(all[:i]).drop(func(p part) bool { return p.in("tilts") }) // "straighten it, it's tilted by 3°"
		}
	}
	if all.any(func(p part) bool { return p.isEdit("denoise") || p.isEdit(Stabilize) }) {
		all.drop(func(p part) bool { return in("smooths", p.words) })
	}
	for i, p := range all { // "it's too yellow, the skin looks orange"
		near := all.near(i)
		again := p.isColor() && near.has("seems") && near.has("skins") && !near.has("wishes") && near[0].class <= filler
		if again && all.any(func(wish part) bool { return wish.means.name() == cures[p.means.name()] }) {
			near.drop(func(p part) bool { return p.class <= named })
		}
	}
	moderate(all)
	if cured >= 0 || all.any(func(p part) bool { return in("repairs", p.means.name()) || p.states() }) {
		all.dropFixes()
	}
}

// dropFixes drops the clauses that only ask for the cure of a complaint: "it hums, remove that", "make it neutral".
func (c clause) dropFixes() {
	alone := false
	for i, p := range c {
		near := c.near(i)
		starts := i == 0 || c[i-1].class == joiner || c[i-1].last.sentence != p.first.sentence ||
			!c[i-1].means.inert() // "it is yellow make it natural"
		alone = (alone || starts) && (p.class == filler || p.class == turning || p.fixes())
		other := func(p part) bool { return p.first.from > c[i].first.from && p.class != filler && !p.fixes() }
		if alone && p.fixes() && !near.any(other) {
			c[i].ignore()
		}
	}
}

// fixes reports whether a part may only ask for the cure of a complaint.
func (p part) fixes() bool {
	return p.means.inert() && (p.in("fixes") || p.in("removers") || inAny(p.words, "ups", "downs"))
}

// moderate applies a small amount that a prompt asks for: "way too dark, brighten it a bit", "blur it, not too much".
func moderate(all clause) {
	last, brightens := -1, all.any(func(p part) bool { return p.means.name() == "brighter" })
	for i, p := range all {
		near, edit := all.near(i), p.means.edit
		adjusts := p.changes() || p.isGround() || edit != nil && (edit.hasDegree())
		switch {
		case adjusts:
			last = i
			if near.strength(near.find(func(other part) bool { return other.first == p.first })) < 1 {
				all.dropComplaints(p)
			}
		case last >= 0 && p.class != joiner && p.first == near[0].first && near.isModest(all[last]):
			all[last].strength = 0.5
			for k := range near {
				near[k].ignore()
				near[k].arguments = nil // "not too big"
			}
		case brightens && near.has("barelys") && near.has("sees") && near.plain():
			near.drop(func(part) bool { return true })
		}
	}
}

// isModest reports whether a clause limits the amount of a change: "not too much", "but not too warm".
func (c clause) isModest(wish part) bool {
	other := func(p part) bool {
		name := p.means.name()
		return name != "" && name != wish.means.name() && name != cures[wish.means.name()] ||
			isUnknown(p) && !p.in("extremes")
	}
	limits := len(c) > 1 && c[0].class == negation && (c[1].in("toos") || c[1].in("zus") || c[1].names("toos"))
	slight := func(p part) bool { return p.strength > 0 && p.strength < 1 }
	fixes := c.any(slight) && c.any(part.fixes) && !c.any(func(p part) bool { return isUnknown(p) && !p.fixes() })
	modest := c.says("modestly") && !c.any(func(p part) bool { return isUnknown(p) && !inAny(p.first.text, "extremes", "toos") })
	return c.plain() && (fixes || modest) || limits && !c.any(other)
}

// dropComplaints drops the complaints that a slight change cures.
func (c clause) dropComplaints(wish part) {
	for i, p := range c {
		if p.first == wish.first || p.means.name() != wish.means.name() {
			continue
		}
		if near := c.near(i); near.count(content) == 0 && about(near) == Whole {
			c[i].ignore()
		}
	}
}

// isFault reports whether a prompt complains of a phrase, as in "it looks so blue, fix it", or whether another clause
// asks for its cure.
func isFault(all clause, at int, phrase, cure string) bool {
	complained := complains(all[:at], all[at].first.sentence)
	near, word := all.near(at), len(all[at].means.phrase) == 1
	seen := near.find(func(p part) bool { return p.in("seems") })
	looks := all[at].isColor() && seen > 0 && !near[seen-1].in("articles")
	last := near[len(near)-1].first == all[at].first // "写真が黄色い"
	judged := last && at > 1 && all[at-1].in("subjects") && !near.has("wishes")
	return complained && word && near.count(content) == 0 && (looks || all.has("fixes")) ||
		complained && word && at > 0 && all[at-1].in("intenses") || in("faults", phrase) &&
		(complained || judged || answered(all, at, cure) || in("pales", phrase) && answered(all, at, "contrast"))
}

// excessive reports whether a word such as "too" belongs to a part. It turns that word into a filler.
func excessive(all clause, at int) bool {
	p := all[at]
	if p.class != named {
		return false
	}
	for i := at - 1; i >= max(0, at-3) && all[i].last.sentence == p.first.sentence && all[i].means.inert(); i-- {
		word, stated := all[i].last.text, complains(all[:i], p.first.sentence)
		pair := all[max(0, i-1)].last.text + " " + word
		starts := i == 0 || all[i-1].last.sentence != p.first.sentence
		zu := stated || starts
		if in("toos", word) || in("toos", pair) || zu && in("zus", word) || stated && in("verys", word) {
			all[i].class, all[i].strength = filler, 0
			return true
		}
		if all[i].class != filler {
			break
		}
	}
	return all[at+1 : min(len(all), at+4)].says("excesses")
}

// unwanted reports whether a clause only asks to remove a fault: "take out the grain". The verb becomes a filler.
func unwanted(all clause, at int) bool {
	near := all.near(at)
	alone := near.count(content) == 0 && near.count(named) == 1
	if !alone || !near.takesAway() || !in("removables", all[at].means.name()) {
		return false
	}
	near.drop(func(p part) bool { return p.class == thing })
	return true
}

// takesAway reports whether a clause has a verb such as "remove" or "take off".
func (c clause) takesAway() bool { return c.has("removers") || c.has("takes") && c.has("outs") }

// answered reports whether a clause names only a fault, and another clause the cure: "a bit blurry, sharpen it".
func answered(all clause, at int, cure string) bool {
	same := func(p part) bool { return p.first.sentence == all[at].first.sentence }
	other := func(p part) bool {
		fault := p.class == joiner || in("faults", strings.Join(p.means.phrase, " "))
		return same(p) && p.class != filler && !fault && p.first != all[at].first
	}
	return !all.any(other) &&
		all.any(func(p part) bool { return (p.means.name() == cure || p.in("fixes")) && !same(p) })
}

// complains reports whether the words of a sentence make a complaint of the fault that follows them.
func complains(before clause, sentence int) (stated bool) {
	if len(before) > 0 && before[len(before)-1].describes() {
		return false
	}
	for i := len(before) - 1; i >= 0 && before[i].last.sentence == sentence; i-- {
		word, pair := before[i].last.text, before[max(0, i-1)].last.text+" "+before[i].last.text
		switch {
		case in("complaints", word), in("complaints", pair), before[i].names("toos"), before[i].names("zus"):
			return true
		case in("wishes", word), before[i].class >= placing, stated && in("sos", word):
			return false
		case in("states", word), before[i].names("states"), in("sos", word) && i == len(before)-1:
			stated = true
		}
	}
	return stated
}

// splash turns a change to black and white into one that keeps colors, if the prompt exempts them: "black and white
// except red".
func splash(all clause) {
	at := graying(all)
	if at < 0 {
		return
	}
	var kept []string
	for i, p := range all {
		color := strings.TrimPrefix(p.means.name(), "less ") // "blanco y negro menos el rojo"
		if i == at || hues[color] == 0 || !p.in("exceptions") && all[at].means.name() != personColor && !exempt(all, i) {
			continue
		}
		kept = append(kept, color)
		for k := i - 1; k >= 0 && all[k].last.sentence == p.first.sentence &&
			(all[k].class == filler || isExempting(all[k]) || isPersonWord(all[k])); k-- {
			all[k].ignore()
		}
		for k := i; k < len(all) && all[k].first.sentence == p.first.sentence &&
			(k == i || all[k].class == content || isExempting(all[k])); k++ {
			all[k].ignore()
			all[k].scope = false // "the yellow coat"
		}
	}
	if len(kept) > 0 {
		all[at].class, all[at].means = named, meaning{phrase: []string{"grayscale"}, modifier: keeping(kept)}
	}
}

// graying returns the index of the part that asks for black and white, or -1.
func graying(all clause) int {
	whole := all.any(func(p part) bool { return p.whole || p.in("exceptions") })
	at := all.find(func(p part) bool {
		name := p.means.name()
		return name == "grayscale" || name == personColor || whole && (name == "gray" || p.in("desaturates"))
	})
	if at < 0 && all.has("onlys") && all.has("incolors") {
		at = all.find(func(p part) bool { return p.in("keeps") || all[0].in("onlys") }) // "keep only the red in color"
	}
	return at
}

func isExempting(p part) bool {
	return p.in("exceptions") || p.in("keeps") || p.in("onlys") || p.in("buts")
}

// exempt reports whether the words around a color exempt it from a change.
func exempt(all clause, at int) bool {
	plain := func(i int) bool {
		return i >= 0 && i < len(all) && all[i].first.sentence == all[at].first.sentence && all[i].means.inert()
	}
	for _, step := range []int{-1, 1} {
		for i := at + step; plain(i); i += step {
			if isExempting(all[i]) {
				return true
			}
		}
	}
	return false
}

// spare finds the words that exclude an area, such as "everything but me", "don't touch the background" and "the
// background unchanged".
func spare(all clause) {
	acts := func(p part) bool {
		return p.in("becomings") || p.changes() || isUnknown(p) && !p.in("changing") && !p.in("unchanged")
	}
	for i, p := range all {
		area := areaOf(p)
		if area == Whole {
			continue
		}
		before, after := around(all, i)
		is := func(at int, list string) bool {
			same := at >= 0 && at < len(all) && all[at].last.sentence == p.first.sentence
			return same && (all[at].in(list) || in(list, all[at].words))
		}
		end := after == len(all) || after == len(all)-1 && all[after].class == filler
		last := end || all[after].first.sentence != p.first.sentence
		switch {
		case is(before, "exceptions"), is(before, "buts") && before > 0 && (last || all[before-1].whole) &&
			!all[before:i].has("onlys"): // "but only the background"
			all[before].class = filler
			all[i].ignore()
			all[i].spared = area
		case is(before, "leaves") && !is(after, "things") && !all.near(i).any(acts):
			all[before].class = negation // not "lass … weg", "lass mich jung aussehen" or "lass … schneien"
		case is(after, "unchanged"), is(after, "nots") && after == len(all)-1: // "aber mich nicht"
			all[i].class, all[i].means, all[i].spared = negation, meaning{}, area
		}
	}
}

// spareTime finds the words that exclude seconds: "except the last second", "but not in the first second".
func spareTime(all clause) {
	for i, p := range all {
		if p.means.edit == nil || !p.means.edit.Trims() || p.isEdit(middle) {
			continue
		}
		after := i + 1 + all[i+1:].find(func(p part) bool { return len(p.arguments) == 0 })
		if in("excluders", all[after].words) {
			all[after].ignore()
			all[i].spares = true
			continue
		}
		k := i - 1
		for k > 0 && all[k].last.sentence == p.first.sentence &&
			!in("exceptions", all[k].words) && !all[k].in("buts") &&
			(all[k].class == filler || numberOf(all[k].first.text) > 0 || len(all[k].arguments) > 0) {
			k--
		}
		if k < 0 || all[k].last.sentence != p.first.sentence {
			continue
		}
		not := all[k].class == negation && !all[k].in("keeps") &&
			(k == 0 || all[k-1].class == joiner || all[k-1].last.sentence != p.first.sentence)
		if !in("exceptions", all[k].words) && !not && (p.in("onlys") || k == 0 || !all[k].in("buts") ||
			!all[k-1].whole && !all.near(k-1).has("everythings")) {
			continue
		}
		all[k].ignore()
		near, keeps := all.near(i), func(p part) bool { return p.in("keeps") && p.class == negation }
		switch {
		case near.removes(): // "cut everything but the last 2 seconds"
			near.drop(func(p part) bool { return p.class == thing })
		case near.any(keeps): // "keep everything except the last second"
			all[i].means.edit = meant(cutOuts[p.means.edit.name]).edit
			near.drop(keeps)
		default:
			all[i].spares = true
		}
	}
}

// stay turns a clause that says what must not change into a negation: "die Helligkeit soll so bleiben".
func stay(all clause) {
	edits := func(p part) bool { return p.changes() || p.means.edit != nil && !p.isGround() }
	for i, p := range all {
		near := all.near(i)
		switch {
		case in("remains", p.words) && all[:i].any(func(p part) bool { return p.spares }):
			near.drop(func(p part) bool { return p.class == content }) // "except the last second, that stays loud"
		case in("remains", p.words) && near.any(part.changes) && !near.hasEdit() && near.count(turning) == 0:
			near.drop(part.changes)
			near[0].class = negation
		case in("stays", p.words) && !near.any(edits):
			near[0].class = negation
		}
	}
}

// around returns the indices of the parts before and after a part that may exclude it. It skips fillers.
func around(all clause, at int) (before, after int) {
	before, after = at-1, at+1
	for before >= 0 && all[before].class == filler && !all[before].whole && !all[before].in("leaves") {
		before--
	}
	for after < len(all)-1 && all[after].class == filler && !all[after].in("unchanged") {
		after++
	}
	return before, after
}
