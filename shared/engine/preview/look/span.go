package look

import (
	"fmt"
	"slices"
)

// Span is the part of a clip to which a change is limited, in seconds, or in clip lengths if Share is set. A negative
// From counts from the clip's end. If To is 0, the part ends with the clip. The zero Span is the entire clip.
type Span struct {
	From, To float64
	Share    bool
}

// Enable returns an FFmpeg option that limits a filter to the span of a clip, or "". length is the clip's, in seconds.
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
	if s.To == 0 {
		s.To = length
	}
	return min(max(0, s.From), length), min(s.To, length)
}

// String returns the span in parentheses after a space, for labels.
func (s Span) String() string {
	switch {
	case s == (Span{}):
		return ""
	case s.Share:
		from, to := s.in(1)
		return fmt.Sprintf(" (%.0f%% to %.0f%%)", 100*from, 100*to)
	case s.From < 0:
		return fmt.Sprintf(" (last %g s)", -s.From)
	case s.To == 0:
		return fmt.Sprintf(" (from %g s)", s.From)
	}
	return fmt.Sprintf(" (%g s to %g s)", s.From, s.To)
}

// limit takes the seconds to which an instruction limits its changes out of its parts and edits: "for the first
// second", "from 1 s to 2 s". It drops the edits that cannot be limited, and turns their phrases into content.
func limit(instruction []part, found []ordered) ([]ordered, Span) {
	var span Span
	var named []int
	vague := false // whether the part's length is unknown, or more than one part is named
	for _, o := range found {
		if o.limits {
			vague = vague || o.vague() || len(named) > 0
			span, named = o.edit.args.span(o.edit.name), append(named, o.at)
		}
	}
	if len(named) == 0 {
		span, named = between(instruction, found)
	}
	if len(named) == 0 && !isUntimed(instruction) {
		return found, span
	}
	refused, kept := vague, []ordered(nil)
	for _, o := range found {
		switch name := o.edit.name; {
		case o.limits:
			continue
		case !vague && len(named) > 0 && o.edit.takes&(start|end) != 0 && o.edit.takes&paint != 0 && !span.Share && (span.From == 0 || span.To == 0): // a fade
			o.edit.args.numbers, span = []float64{max(span.To, -span.From)}, Span{}
		case !vague && len(named) > 0 && limitable[name]:
			o.edit.args.during = span
		default:
			refused, instruction[o.at].class, instruction[o.at].means = true, content, meaning{}
			continue
		}
		kept = append(kept, o)
	}
	for i := range instruction {
		if p := &instruction[i]; slices.Contains(named, i) || refused && len(p.arguments) > 0 && p.arguments[0].kinds&seconds != 0 {
			p.class, p.means, p.strength = map[bool]class{true: content, false: filler}[refused], meaning{}, 0
			p.arguments = map[bool][]argument{true: {{kinds: share}}, false: p.arguments}[vague] // so that isUntimed finds the part
		}
	}
	drop(instruction, func(p part) bool {
		word := p.first.text
		return !refused && len(named) > 0 && (in("spans", word) || in("sinces", word) || in("untils", word) || units()[word] == seconds)
	})
	return kept, span
}

// vague reports whether an edit that limits others names a part of the clip whose length is unknown.
func (o ordered) vague() bool {
	told := o.given != 0 || slices.ContainsFunc(words(o.edit.Phrase), isSecond)
	return told == (o.edit.name == middle && o.edit.args.unit != share)
}

// isWhen reports whether an instruction only says when another one applies: "only for the first 2 seconds".
func isWhen(instruction []part) bool {
	timed, first := false, 0
	for i, p := range instruction {
		switch {
		case p.means.edit != nil:
			if timed = true; !p.means.edit.isSpan() {
				return false
			}
		case len(p.arguments) > 0:
			timed = timed || p.arguments[0].kinds == seconds
		case p.class == joiner && first == i:
			first++
		case p.class != filler && !isTimely(p.first.text) && !isDigit(p.first.text, 0):
			return false
		}
		timed = timed || units()[p.first.text] == seconds
	}
	return timed && (in("whens", instruction[first].first.text) || has(instruction[first:min(first+2, len(instruction))], "sinces"))
}

// isUntimed reports whether an instruction names a time that was not read: "after the 2nd second", "for half".
func isUntimed(instruction []part) bool {
	number, limits, timed, shared := false, false, false, false
	for _, p := range instruction {
		shared = shared || p.class == content && len(p.arguments) > 0 && p.arguments[0].kinds&share != 0
		number = number || p.class == content && isDigit(p.first.text, 0)
		limits = limits || in("sinces", p.first.text) || in("untils", p.first.text)
		timed = timed || units()[p.first.text] == seconds || p.class == content && len(p.arguments) > 0 && p.arguments[0].kinds == seconds
	}
	return shared || number && limits && timed
}

// limitable has the names of edits that can be limited to a part of a clip.
var limitable = map[string]bool{
	Title: true, Logo: true, "border": true, "mirror": true, "flip vertically": true, "denoise": true, Mute: true,
	"louder": true, "quieter": true, "slow motion": true, "faster": true,
}

// span returns the part of a clip that an edit with the given name would keep.
func (a arguments) span(name string) Span {
	switch by := a.number(1.0 / 3); {
	case name == middle:
		return Span{(1 - by) / 2, (1 + by) / 2, true}
	case a.unit == share:
		return map[bool]Span{true: {From: -by, Share: true}, false: {To: by, Share: true}}[name == "last"]
	case name == "last":
		return Span{From: -a.number(1)}
	case len(a.numbers) > 1:
		return Span{From: a.numbers[0], To: a.numbers[1]}
	}
	return Span{To: a.number(1)}
}

// between returns the span that the numbers of an instruction name, and the indices of these numbers, if an edit or a
// look precedes or follows them. If the numbers are not times, the span is zero.
func between(instruction []part, found []ordered) (Span, []int) {
	var times arguments
	var at []int
	timed, since, until, changes := false, false, false, len(found) > 0
	for i, p := range instruction {
		timed = timed || units()[p.first.text] == seconds
		end := i+1 < len(instruction) && in("ends", instruction[i+1].first.text) // "from 2 s until the end"
		since, until = since || in("sinces", p.first.text), until || in("untils", p.first.text) && !end
		changes = changes || p.means.look != nil || p.means.modifier != nil
		if p.class == content && len(p.arguments) > 0 && p.arguments[0].kinds&seconds != 0 {
			timed = timed || p.arguments[0].kinds == seconds
			p.arguments[0].set(&times)
			at = append(at, i)
		}
	}
	switch n := times.numbers; {
	case !timed || !changes:
	case len(n) == 2 && n[0] < n[1]:
		return Span{From: n[0], To: n[1]}, at
	case len(n) == 1 && n[0] > 0 && since && !until:
		return Span{From: n[0]}, at
	case len(n) == 1 && n[0] > 0 && until && !since:
		return Span{To: n[0]}, at
	}
	return Span{}, nil
}
