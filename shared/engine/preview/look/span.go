package look

import (
	"fmt"
	"slices"
)

// Span is the part of a clip to which a change is limited, in seconds, or in clip lengths if Share is set. A negative
// number counts from the clip's end. If To is 0, the part ends with the clip. The zero Span is the entire clip.
type Span struct {
	From, To float64
	Share    bool
}

// Enable returns an FFmpeg option that limits a filter to the span of a clip, or "". The clip's length is in seconds.
func (s Span) Enable(length float64) string {
	if s == (Span{}) {
		return ""
	}
	from, to := s.in(length)
	if to == length {
		to++
	}
	return fmt.Sprintf(":enable='gte(t,%.3f)*lt(t,%.3f)'", from, to)
}

// in returns the start and the end of the span in a clip of the given length.
func (s Span) in(length float64) (from, to float64) {
	if s.Share {
		s.From, s.To = s.From*length, s.To*length
	}
	if s.From < 0 {
		s.From += length
	}
	if s.To <= 0 {
		s.To += length
	}
	return min(max(0, s.From), length), min(max(0, s.To), length)
}

// String returns the span in parentheses after a space, for labels.
func (s Span) String() string {
	switch {
	case s == (Span{}):
		return ""
	case s.Share:
		from, to := s.in(1)
		return fmt.Sprintf(" (%.0f%% to %.0f%%)", 100*from, 100*to)
	case s.To < 0:
		return fmt.Sprintf(" (all but the last %g s)", -s.To)
	case s.From < 0:
		return fmt.Sprintf(" (last %g s)", -s.From)
	case s.To == 0:
		return fmt.Sprintf(" (from %g s)", s.From)
	}
	return fmt.Sprintf(" (%g s to %g s)", s.From, s.To)
}

// limit takes the seconds to which a clause limits its changes out of its parts and edits: "for the first second",
// "from 1 s to 2 s". It drops the edits that cannot be limited, and turns their phrases into content.
func limit(c clause, found []ordered) ([]ordered, Span) {
	var l limits
	l.read(c, found)
	if len(l.named) == 0 && !isUntimed(c) {
		return found, l.span
	}
	var kept []ordered
	for _, o := range found {
		switch {
		case o.limits:
		case l.apply(&o):
			kept = append(kept, o)
		default:
			l.refused = true
			c[o.at].disown()
		}
	}
	for i := range c {
		if slices.Contains(l.named, i) || l.refused && c[i].kinds()&seconds != 0 {
			l.take(&c[i])
		}
	}
	c.drop(func(p part) bool {
		return !l.refused && len(l.named) > 0 && (p.in("spans") || p.in("sinces") || p.in("untils") || p.isSecond())
	})
	return kept, l.span
}

// limits is the part of a clip to which a clause limits its changes.
type limits struct {
	span Span
	// named are the indices of the words for it.
	named []int
	// vague means that its length is unknown, or that there are several. refused means that a change has no limit.
	vague, refused bool
}

// read finds the part of the clip, which an edit such as "first 2 seconds" or two numbers name.
func (l *limits) read(c clause, found []ordered) {
	for _, o := range found {
		if o.limits {
			l.vague = l.vague || o.vague() || len(l.named) > 0
			l.span, l.named = o.edit.args.span(o.edit.name), append(l.named, o.at)
			if c[o.at].spares {
				l.vague = l.vague || l.span.From > 0
				l.span.From, l.span.To = l.span.To, l.span.From // all but the first or the last seconds
			}
		}
	}
	if len(l.named) == 0 {
		l.span, l.named = between(c, len(found) > 0)
	}
	if changes := len(found) > 0 || c.changes(); changes && len(l.named) == 0 {
		l.edge(c)
	}
	l.refused = l.vague
}

// edge limits the changes to the first or the last seconds if the clause names an end of the clip: "at the end".
func (l *limits) edge(c clause) {
	const short = 2
	for i, p := range c {
		if k := p.kinds(); p.class == content && (k == start || k == end) && c.follows("ats", i) {
			l.vague = len(l.named) > 0
			l.span, l.named = map[kinds]Span{start: {To: short}, end: {From: -short}}[k], append(l.named, i)
		}
	}
}

// apply limits an edit, or makes a fade at an end of the clip as long as the part. It returns false if it cannot.
func (l *limits) apply(o *ordered) bool {
	if l.vague || len(l.named) == 0 {
		return false
	}
	atEnd := !l.span.Share && (l.span.From == 0 && l.span.To > 0 || l.span.To == 0)
	switch {
	case o.edit.isFade() && o.edit.takes&paint != 0 && atEnd:
		if o.edit.name == "fade in and out" {
			o.edit.operation = meant(map[bool]string{true: "fade in", false: "fade out"}[l.span.From == 0]).edit
		}
		o.edit.args.numbers, l.span = []float64{max(l.span.To, -l.span.From)}, Span{}
	case in("limitable", o.edit.name):
		o.edit.args.during = l.span
	default:
		return false
	}
	return true
}

// take turns a word for the part of the clip into a filler, or into content if a change cannot be limited to it.
func (l *limits) take(p *part) {
	p.ignore()
	if p.strength = 0; l.refused {
		p.disown()
	}
	if l.vague {
		p.arguments = []argument{{kinds: share}} // so that isUntimed finds the part
	}
}

// vague reports whether an edit that limits others names a part of the clip whose length is unknown.
func (o ordered) vague() bool {
	told := o.given != 0 || slices.ContainsFunc(words(o.edit.Phrase), isSecond)
	return told == (o.edit.name == middle && o.edit.args.unit != share)
}

// isSegment reports whether a phrase for seconds only tells to which part of the clip another change applies: "mute
// the first 3 seconds", "slow motion for the last 2 seconds".
func isSegment(c clause, at int) bool {
	if at > 1 && c[1:].follows("purposes", at-1) || c[at].spares {
		return true
	}
	p := c[at]
	if len(p.means.phrase) > 2 && !p.isPortion() && !isUnspaced([]rune(p.first.text)[0]) || p.in("keeps") {
		return false
	}
	changes := func(p part) bool {
		cuts := p.means.edit != nil && (p.means.edit.needs && p.means.edit.takes&seconds != 0 || p.isEdit("crop"))
		return p.changes() || p.means.edit != nil && !cuts
	}
	for i := at - 1; i >= 0 && (c[i].class != joiner || p.in("whens") || c[i].in("buts") && c[i+1].in("whens") ||
		c[i].last.sentence != c[i+1].first.sentence); i-- {
		if changes(c[i]) {
			return true
		}
	}
	after := c[at+1:].find(func(p part) bool {
		return changes(p) || p.class == joiner || p.in("finals") || p.in("keeps")
	})
	return after >= 0 && changes(c[at+1+after])
}

// isTimely reports whether a word may stand next to the seconds to which a change is limited.
func isTimely(word string) bool {
	return inAny(word, "spans", "sinces", "untils", "ends", "tos", "seconds")
}

func isSecond(word string) bool { return units()[word] == seconds }

// isWhen reports whether a clause only says when another one applies: "only for the first 2 seconds".
func isWhen(c clause) bool {
	timed, first := false, 0
	for i, p := range c {
		switch {
		case p.means.edit != nil:
			if timed = true; !p.means.edit.Trims() {
				return false
			}
		case len(p.arguments) > 0:
			timed = timed || p.kinds()&^(start|end) == 0 || p.kinds() == seconds
		case p.class == joiner && first == i:
			first++
		case p.in("keeps"), p.class != filler && !isTimely(p.first.text) && !isDigit(p.first.text, 0):
			return false
		}
		timed = timed || p.isSecond()
	}
	spares := c.any(func(p part) bool { return p.spares })
	return timed && (spares || c[first].in("whens") || c[first:min(first+2, len(c))].has("sinces") ||
		c[len(c)-1].in("whens")) // "最初の2秒だけ"
}

// isUntimed reports whether a clause names a time that was not read: "after the 2nd second", "for half".
func isUntimed(c clause) bool {
	shared := c.any(func(p part) bool { return p.class == content && p.kinds()&share != 0 })
	number := c.any(func(p part) bool { return p.class == content && isDigit(p.first.text, 0) })
	timed := c.any(func(p part) bool { return p.isSecond() || p.class == content && p.kinds() == seconds })
	return shared || number && timed && (c.has("sinces") || c.has("untils"))
}

// span returns the part of a clip that an edit with the given name would keep.
func (a arguments) span(name string) Span {
	switch by := a.number(1.0 / 3); {
	case name == middle:
		return Span{(1 - by) / 2, (1 + by) / 2, true}
	case a.unit == share && name == "last":
		return Span{From: -by, Share: true}
	case a.unit == share:
		return Span{To: by, Share: true}
	case name == "last":
		return Span{From: -a.number(1)}
	case len(a.numbers) > 1:
		return Span{From: a.numbers[0], To: a.numbers[1]}
	}
	return Span{To: a.number(1)}
}

// between returns the span that the numbers of a clause name, and the indices of these numbers, if the clause changes
// something. If the numbers are not times, the span is zero.
func between(c clause, changes bool) (Span, []int) {
	var times arguments
	var at []int
	timed, since, until := c.any(part.isSecond), c.has("sinces"), false
	for i, p := range c {
		end := i+1 < len(c) && c[i+1].in("ends") // "from 2 s until the end"
		until = until || p.in("untils") && !end
		if p.class == content && p.kinds()&seconds != 0 {
			timed = timed || p.kinds() == seconds
			p.arguments[0].set(&times)
			at = append(at, i)
		}
	}
	switch n := times.numbers; {
	case !timed || !changes && !c.changes():
	case len(n) == 2 && n[0] < n[1]:
		return Span{From: n[0], To: n[1]}, at
	case len(n) == 1 && n[0] > 0 && since && !until:
		return Span{From: n[0]}, at
	case len(n) == 1 && n[0] > 0 && until && !since:
		return Span{To: n[0]}, at
	}
	return Span{}, nil
}
