package look

import (
	"fmt"
	"slices"
)

// Span is the part of a clip to which a change is limited, in seconds. A negative From counts from the clip's end. If
// To is 0, the part ends with the clip. The zero Span is the entire clip.
type Span struct{ From, To float64 }

// Enable returns an FFmpeg option that limits a filter to the span of a clip, or "". length is the clip's, in seconds.
func (s Span) Enable(length float64) string {
	if s == (Span{}) {
		return ""
	}
	from, to := s.in(length + 1)
	if s.From < 0 {
		from--
	}
	return fmt.Sprintf(":enable='gte(t,%.3f)*lt(t,%.3f)'", from, to)
}

// in returns the start and the end of the span in a clip of the given length.
func (s Span) in(length float64) (from, to float64) {
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
	for _, o := range found {
		if o.limits {
			span, named = o.edit.args.span(o.edit.name), append(named, o.at)
		}
	}
	if len(named) == 0 {
		span, named = between(instruction, found)
	}
	if len(named) == 0 && !isUntimed(instruction) {
		return found, span
	}
	refused := false
	var kept []ordered
	for _, o := range found {
		switch name := o.edit.name; {
		case o.limits:
			continue
		case len(named) > 0 && o.edit.takes&(start|end) != 0 && o.edit.takes&paint != 0 && (span.From == 0 || span.To == 0): // a fade
			o.edit.args.numbers, span = []float64{max(span.To, -span.From)}, Span{}
		case len(named) > 0 && limitable[name]:
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
		}
	}
	drop(instruction, func(p part) bool {
		word := p.first.text
		return !refused && (in("spans", word) || in("sinces", word) || in("untils", word) || units()[word] == seconds)
	})
	return kept, span
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

// isUntimed reports whether an instruction names a time that was not read: "after the 2nd second".
func isUntimed(instruction []part) bool {
	number, limits, timed := false, false, false
	for _, p := range instruction {
		number = number || p.class == content && isDigit(p.first.text, 0)
		limits = limits || in("sinces", p.first.text) || in("untils", p.first.text)
		timed = timed || units()[p.first.text] == seconds || p.class == content && len(p.arguments) > 0 && p.arguments[0].kinds == seconds
	}
	return number && limits && timed
}

// limitable has the names of edits that can be limited to a part of a clip.
var limitable = map[string]bool{
	Title: true, Logo: true, "border": true, "mirror": true, "flip vertically": true, "denoise": true, Mute: true,
	"louder": true, "quieter": true, "slow motion": true, "faster": true,
}

// span returns the part of a clip that an edit with the given name would keep.
func (a arguments) span(name string) Span {
	switch {
	case name == "last":
		return Span{From: -a.number(1)}
	case len(a.numbers) > 1:
		return Span{a.numbers[0], a.numbers[1]}
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
		return Span{n[0], n[1]}, at
	case len(n) == 1 && n[0] > 0 && since && !until:
		return Span{From: n[0]}, at
	case len(n) == 1 && n[0] > 0 && until && !since:
		return Span{To: n[0]}, at
	}
	return Span{}, nil
}
