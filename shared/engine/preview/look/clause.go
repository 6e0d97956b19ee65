package look

import (
	"slices"
	"strings"
)

// clause is a piece of a prompt that asks for one thing, such as "make the background red". Its first part's class is
// the kind of request.
type clause []part

// any reports whether the function selects a part.
func (c clause) any(is func(part) bool) bool { return slices.ContainsFunc(c, is) }

// find returns the index of the first part that the function selects, or -1.
func (c clause) find(is func(part) bool) int { return slices.IndexFunc(c, is) }

// has reports whether a part starts with a word from a list.
func (c clause) has(list string) bool { return c.any(func(p part) bool { return p.in(list) }) }

func (c clause) count(k class) int {
	n := 0
	for _, p := range c {
		if p.class == k {
			n++
		}
	}
	return n
}

// drop turns the parts that the function selects into fillers.
func (c clause) drop(which func(part) bool) {
	for i := range c {
		if which(c[i]) {
			c[i].ignore()
		}
	}
}

// says reports whether a clause has a phrase from a list.
func (c clause) says(list string) bool {
	var text strings.Builder
	text.WriteByte(' ')
	for _, p := range c {
		text.WriteString(p.words + " ")
	}
	for phrase := range lists()[list] {
		if strings.Contains(text.String(), " "+phrase+" ") {
			return true
		}
	}
	return false
}

// negated reports whether a clause asks to leave something unchanged. cancelled includes clauses that a word anywhere
// cancels, as in Hindi.
func (c clause) negated() bool   { return c[0].class == negation }
func (c clause) cancelled() bool { return c.negated() || c.count(refusal) > 0 }

func (c clause) writes() bool    { return c.any(part.writes) }
func (c clause) hasEdit() bool   { return c.any(func(p part) bool { return p.means.edit != nil }) }
func (c clause) hasPerson() bool { return c.any(isPersonWord) }

// whole reports whether a clause refers to the entire picture.
func (c clause) whole() bool { return c.any(func(p part) bool { return p.whole }) }

// changes reports whether a clause requests a look or a small change.
func (c clause) changes() bool { return c.any(part.changes) }

// requests reports whether a clause requests a change or an edit that can be limited to seconds.
func (c clause) requests() bool {
	return c.changes() || c.any(func(p part) bool { return in("limitable", p.means.name()) })
}

// plain reports whether a clause names no look, change or edit.
func (c clause) plain() bool { return !c.any(func(p part) bool { return !p.means.inert() }) }

// removes reports whether a clause has a verb such as "remove".
func (c clause) removes() bool { return c.any(func(p part) bool { return p.class == thing }) }

// color returns the index of the first color, or -1.
func (c clause) color() int { return c.find(part.isColor) }

// near returns the parts between the words for "and" around an index.
func (c clause) near(at int) clause {
	from, to, sentence := at, at, c[at].first.sentence
	for ; from > 0 && c[from-1].class != joiner && c[from-1].last.sentence == sentence; from-- {
	}
	for ; to < len(c) && c[to].class != joiner && c[to].first.sentence == sentence; to++ {
	}
	return c[from:to]
}

// follows reports whether a word from a list is the last one before a part, apart from articles and colors.
func (c clause) follows(list string, at int) bool {
	for at--; at > 0 && (c[at].in("articles") || c[at].isColor()) && !c[at].in(list); at-- {
	}
	return at >= 0 && in(list, c[at].last.text)
}

// clauses splits a prompt's parts at punctuation and before words that start a clause. A negation applies until the
// next punctuation.
func clauses(all clause) []clause {
	all = slices.Clone(all)
	var split []clause
	start := 0
	for i := range all {
		if i == 0 || begins(all, i, split[len(split)-1]) {
			split, start = append(split, nil), i
		}
		split[len(split)-1] = all[start : i+1]
	}
	for i := len(split) - 2; i >= 0; i-- {
		if belong(split[i], split[i+1]) {
			split[i] = slices.Concat(split[i], split[i+1])
			split = slices.Delete(split, i+1, i+2)
			i = min(i+1, len(split)-1) // more may follow
		}
	}
	return split
}

// begins reports whether the part with an index starts a clause. The clause before it is `current`.
func begins(all clause, at int, current clause) bool {
	p, joined := all[at], all[at-1].class == joiner
	lettering := (p.in("insides") || p.kinds() == scale) && current.writes() // `add "Sale", in red`
	if p.first.sentence != all[at-1].last.sentence && !lettering {
		return true
	}
	switch p.class {
	case placing, turning, thing:
		over := !current.negated() || joined || exhausted(current, all, at)
		return (over || sparedBy(current) != Whole) && !p.in("finals")
	case negation:
		return true
	case named:
		if exhausted(current, all, at) {
			return true
		}
	}
	rest := all.near(at)
	if p.writes() && current.writes() && current[0].class != thing || joined && p.means.edit != nil && p.means.edit.isFade() && current.requests() {
		return true // `"A" for the first second and "B" for the last`, "quieter and fade out for the last second"
	}
	if joined && current.requests() && rest.requests() && rest[:min(3, len(rest))].any(part.isPortion) {
		return true // "warmer and the last 2 seconds black and white"
	}
	edits := p.means.edit != nil && !p.isGround() && about(current) == Background // "blur the background and crop it"
	return joined && (edits || turns(all, at, current))
}

// exhausted reports whether a negated clause is over before the part with an index: "no filters just make it brighter",
// "without any filter crop it".
func exhausted(current, all clause, at int) bool {
	if !current.negated() || current[0].in("keeps") || len(current) < 2 {
		return false
	}
	verb := current[0].in("withouts") && current[0].first == all[0].first && classOf(all[at].first.text) >= placing
	return verb || len(current) > 2 && all[at-1].in("justs")
}

// turns reports whether "and" starts a clause about another area: "blur the background and brighten me".
func turns(all clause, at int, current clause) bool {
	rest := all.near(at)
	pictured := changesAll(rest) && rest.whole() && about(current) == Background ||
		changesAll(current) && current.whole() && about(rest) == Background // "den Hintergrund unscharf und das Bild heller"
	return pictured || setsGround(current) && (changesAll(rest) || rest.writes()) || setsGround(rest) && changesAll(current) ||
		sparedBy(current) != Whole || isColored(current) || current.negated() && (current[0].in("keeps") || current.says("stays")) ||
		about(all[at:])+about(current) == Person+Background
}

// belong reports whether two clauses are one: "at the top, add the text …" and "blur it, only for the first second".
func belong(first, second clause) bool {
	rings := first.has("rings") && !first.any(func(p part) bool { return p.class != filler && !p.in("rings") })
	return isWhen(first) || isWhen(second) || rings && second.any(part.isFrame) ||
		isLettering(first) && second.writes() || isLettering(second) && first.writes()
}

// isLettering reports whether a clause only gives a text's position or color: "at the top".
func isLettering(c clause) bool {
	return !c.any(func(p part) bool { return p.class != filler && p.kinds()&place == 0 && !p.isColor() })
}

// setsGround reports whether parts give the background a color or a scene, or remove it.
func setsGround(c clause) bool {
	at := c.find(part.isGround)
	return at >= 0 && (c[at].means.edit.name == removed || removes(c, at) || c.color() >= 0)
}

// changesAll reports whether parts change the picture without naming an area.
func changesAll(c clause) bool {
	return about(c) == Whole && c.any(func(p part) bool { return p.changes() && !p.isColor() })
}

// names reports whether a clause names an object that a color before or after it may describe.
func names(c clause) bool { return !c.negated() && c.count(content) > 0 }

// isLocal reports whether a clause adds an object that is not in the lexicon, or turns such an object into something.
func isLocal(c clause) bool {
	switch c[0].class {
	case placing:
		return c.count(content) > 0
	case turning:
		for i, p := range c[1:] {
			switch {
			case p.whole && !(i+2 < len(c) && c[i+2].in("ofs")), p.class == named:
				return false
			case p.class == content:
				return true
			}
		}
	}
	return false
}

// isBare reports whether a clause is only a color, like "a red" in "a red, leather jacket".
func isBare(c clause) bool {
	return c.color() >= 0 && !c.any(func(p part) bool {
		return p.whole || p.scope || !p.isColor() && p.class != filler && p.class != joiner
	})
}

// recolorsIt reports whether a clause only gives a color to "it", such as the sky in "the sky looks dull, make it blue".
func recolorsIt(c clause) bool {
	return c.color() >= 0 && c.has("its") && !c.any(func(p part) bool {
		return p.whole && !p.in("its") || p.means.edit != nil || p.changes() && !p.isColor()
	})
}

// excludes reports whether a clause excludes an object, a color or an effect from the changes: "except the dog",
// "keep the red", "don't blow out the sky".
func excludes(c clause) bool {
	spares := c[0].in("exceptions") || c[0].in("keeps") || c.says("stays")
	limits := c.negated() && (!c[0].in("lacks") || c[1:].any(func(p part) bool {
		return p.in("changing") || p.class == content && strings.HasSuffix(p.words, "ing")
	}))
	return (spares || limits) && c[1:].any(func(p part) bool {
		return spares && p.isColor() || p.class == content && areaOf(p) == Whole &&
			(quality(p) == "" || p.in("colorings")) && !inAny(p.words, "stays", "changing", "sounds", "size", "time")
	})
}

// tempers reports whether a clause limits a quality: "but not too dark".
func (c clause) tempers() bool {
	return c.negated() && len(c) > 1 && (inAny(c[1].first.text, "toos", "zus", "verys") || c[1].names("toos"))
}

// doubts reports whether a negated clause may ask for a change: "no black bars", "keep only the red", "not just red".
func doubts(c clause) bool {
	just := c.find(func(p part) bool { return p.in("justs") })
	return just > 0 && !c[just:].plain() || c[1:].any(func(p part) bool {
		known := inAny(p.first.text, "changing", "sounds", "colorings", "unchanged") || in("stays", p.words)
		return isUnknown(p) && !known && quality(p) == "" || p.isColor() && c.has("onlys") ||
			c[0].in("lacks") && p.isFrame()
	})
}

// isAim reports whether the words before a colon ask for nothing known: "make me pop: blur the background".
func isAim(c clause, text string) bool {
	return c.count(content) > 0 && c.count(named) == 0 && c[0].class != placing && c[0].class != thing &&
		!strings.ContainsAny(text, `"“„«「『`)
}
