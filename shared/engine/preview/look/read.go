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

// explained has the ignored words without a meaning, the topic of the ignored parts, and the prompt's language if it
// is unknown. Both may be "".
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
	r := asked.Result
	slices.SortStableFunc(r.Edits, func(a, b Edit) int { return a.rank - b.rank })
	r.Understood, r.Limited = asked.names(), asked.span != Span{}
	for area, name := range areaNames {
		for _, wish := range asked.parts[area].names() {
			r.Areas = append(r.Areas, wish+" ("+name+")")
		}
	}
	return r
}

// maxWords limits the words that are read, because reading compares each word with many others.
const maxWords = 400

// passes change the parts of a prompt, in this order, before it is split into clauses.
var passes = []func(clause){measure, plain, cure, splash, spare, spareTime, stay}

// read reads a prompt: it finds its parts, splits them into clauses, and follows each clause.
func (asked request) read(prompt string, known func(word string) bool) request {
	asked.Empty = strings.TrimSpace(prompt) == ""
	rest := ""
	if words := tokenize(prompt); len(words) > maxWords {
		prompt, rest = prompt[:words[maxWords].from], prompt[words[maxWords].from:]
	}
	all := parts(prompt, known)
	if aim, rest, found := strings.Cut(prompt, ": "); found && isAim(parts(aim, known), aim) {
		all = parts(aim+", "+rest, known)
	}
	for _, pass := range passes {
		pass(all)
	}
	split := clauses(all)
	asked.lone, asked.alone = isLone(all), all.any(func(p part) bool { return in("rests", p.words) })
	areas, spans := asked.areas(prompt, split), asked.orders(prompt, split)
	asked.pad()
	f := following{request: &asked, split: split, areas: areas, spans: spans, described: known != nil}
	for i := range split {
		f.follow(i)
	}
	f.addGeneric()
	asked.Declined = f.kept && !f.other
	dropped := map[int]bool{}
	for _, p := range f.ignored {
		dropped[p.first.from] = true
	}
	asked.Ignored = quote(prompt, all, dropped)
	if rest != "" {
		asked.Ignored = append(asked.Ignored, rest)
	}
	asked.explain(prompt, all, dropped)
	return asked
}

// orders adds the ordinary edits of all clauses, and returns the parts of the clip to which they are limited.
func (asked *request) orders(prompt string, split []clause) []Span {
	spans := make([]Span, len(split))
	for i, c := range split {
		spans[i] = asked.order(prompt, c)
		_, frozen := Find(asked.Edits, freezeAt)
		if frozen || i > 0 && spans[i-1] != (Span{}) && spans[i] == (Span{}) {
			c.drop(func(p part) bool { return p.in("afterwards") }) // "then back to normal"
		}
		if spans[i] != (Span{}) {
			c.dropReturns()
		}
	}
	return spans
}

// dropReturns ignores the words that undo a change after its seconds: "blur the first second, then go sharp".
func (c clause) dropReturns() {
	changed := ""
	for k := range c {
		if name := c[k].means.name(); name != "" && cures[changed] == name {
			c[k].ignore()
		} else if name != "" {
			changed = name
		}
	}
}

// following adds the looks and small changes of the clauses, and collects the parts that are ignored.
type following struct {
	*request
	split []clause
	areas []Area
	spans []Span
	// described means that the prompt describes a new scene instead of an edit.
	described bool
	generic   [Person + 1]*entry
	ignored   clause
	// kept means that a clause asks to leave something unchanged, and other that another clause asks for something.
	kept, other bool
}

// follow follows the clause with the given index, unless it is about an object or asks to leave something unchanged.
func (f *following) follow(i int) {
	c, area := f.split[i], f.areas[i]
	if c.cancelled() {
		asks := func(c clause) bool { return !c.cancelled() && (c.changes() || c.hasEdit() || c.count(content) > 0) }
		limits := excludes(c) && len(f.split) > 1 && !f.respects(c)
		states := i > 0 && inAny(f.split[i-1][len(f.split[i-1])-1].last.text, "states", "complaints") // "it's not too dark"
		tempers := c.tempers() && !states && slices.ContainsFunc(f.split, asks)
		if f.kept = true; limits || tempers || doubts(c) && !slices.ContainsFunc(f.split, asks) {
			f.ignore(c)
		}
		return
	}
	beside := slices.ContainsFunc(f.split[max(0, i-1):min(i+2, len(f.split))], names)
	painted := i > 0 && names(f.split[i-1]) && !f.split[i-1].whole() && recolorsIt(c)
	if painted || !c.hasEdit() && (c[0].class == thing || !f.described && isLocal(c) || area == Whole && isBare(c) && beside) {
		f.ignore(slices.DeleteFunc(slices.Clone(c), func(p part) bool {
			return p.class == named && len(p.means.phrase) == 0 // the caller handles it
		}))
		return
	}
	to, span := f.of(area), f.spans[i]
	if c.changes() {
		if to.follows() && to.span != span || span != (Span{}) && area != Whole {
			f.ignore(c) // all changes of an area share a span
			return
		}
		to.span = span
	}
	followed, left := to.follow(c, &f.generic[area])
	f.ignored = append(f.ignored, left...)
	f.other = f.other || followed || len(left) > 0
}

// respects reports whether the edits observe a negated clause: "keep the colors", "don't cut off my head".
func (f *following) respects(c clause) bool {
	recolors := func(c clause) bool {
		return !c.negated() && c.any(func(p part) bool { return p.changes() && !in("colorless", p.means.name()) })
	}
	crops := slices.ContainsFunc(f.Edits, Edit.Centers)
	others := c.any(func(p part) bool { return p.class == content && !p.in("colorings") && !in("stays", p.words) })
	return c.has("colorings") && !others && !slices.ContainsFunc(f.split, recolors) || c.count(placing) > 0 ||
		crops && c.has("heads") || c.removes() && !crops
}

func (f *following) ignore(c clause) {
	f.other = true
	f.ignored = append(f.ignored, c...)
}

// addGeneric adds the looks that a prompt requests only if it names no other look.
func (f *following) addGeneric() {
	for area, found := range f.generic {
		if to := f.of(Area(area)); found != nil && (found.medium || len(to.moods) == 0) {
			to.add(found)
		}
	}
}

// pad makes a crop keep the whole picture if the prompt asks for that: "square, but don't crop anything".
func (asked *request) pad() {
	at := slices.IndexFunc(asked.Edits, func(e Edit) bool { return e.name == padded })
	if at < 0 {
		return
	}
	crop, crops := Find(asked.Edits, "crop")
	bars, _ := Find(asked.Edits, "letterbox")
	asked.Edits[at].args.blurred = asked.blurred
	wanted := &asked.Edits[at].args.wanted
	if *wanted = cmp.Or(*wanted, crop.args.wanted, bars.args.wanted); *wanted == 0 && crops {
		*wanted = 1
	}
	shapeless := *wanted == 0 // "watercolor without cropping"
	asked.Edits = slices.DeleteFunc(asked.Edits, func(e Edit) bool {
		return e.name == "crop" || e.name == padded && shapeless || e.name == "letterbox" && !shapeless
	})
}

// These are the topics of prompts, and the languages that Read recognizes but does not know.
var (
	topics    = []string{"sound", "size", "text", "time"}
	languages = []string{"Dutch", "Indonesian", "Polish", "Swedish", "Turkish", "Vietnamese"}
)

// explain finds the unknown words of a prompt, its language and the topic of its ignored parts.
func (asked *request) explain(prompt string, all clause, dropped map[int]bool) {
	found := map[string]int{}
	for _, p := range all {
		if !dropped[p.first.from] {
			continue
		}
		if about := slices.IndexFunc(topics, p.in); asked.Topic == "" && about >= 0 {
			asked.Topic = topics[about]
		}
		if !isUnknown(p) || len(p.arguments) > 0 {
			continue
		}
		if len(asked.Unknown) < maxQuotes && !isUnspaced([]rune(p.first.text)[0]) {
			asked.Unknown = append(asked.Unknown, shorten(prompt[p.first.from:p.last.to]))
		}
		for _, language := range languages {
			if p.in(language) {
				found[language]++
			}
			if found[language] > max(1, found[asked.Language]) {
				asked.Language = language
			}
		}
	}
}

// follow adds the looks and modifiers that a clause requests, and returns the parts that it ignores. It sets generic
// to the first generic look.
func (asked *wishes) follow(c clause, generic **entry) (followed bool, left clause) {
	unknown := c.count(content) > 0
	scoped := c.any(func(p part) bool { return p.scope && !(p.in("tints") && p.first == c[0].first) }) // not "tint the sky"
	untimed := isUntimed(c)
	for i, p := range c {
		means := p.means
		object := p.isColor() && i+1 < len(c) && (c[i+1].isEdit(Logo) || // "draw a black line across the picture"
			c[max(0, i-1)].in("articles") && isUnknown(c[i+1]) && len(c[i+1].arguments) == 0)
		vague := untimed || object || unknown && (p.alone || means.modifier != nil && !scoped && !separate(c, i))
		followed = followed || p.class == named && means.inert() || means.edit != nil || !vague && p.changes()
		switch {
		case p.class == content && i > 0 && c[i-1].means.look != nil && p.in("afterLook"):
		case p.class == content:
			left = append(left, p)
		case len(means.phrase) == 0, means.edit != nil:
		case vague:
			left = append(left, p)
		case means.generic:
			*generic = cmp.Or(*generic, means.look)
		case means.look != nil:
			asked.faint = asked.faint || c.strength(i) < 1
			if !asked.add(means.look) {
				left = append(left, p)
			}
		case !asked.modify(means.modifier, c.strength(i)):
			left = append(left, p)
		}
	}
	return followed, left
}

// separate reports whether a change of the whole picture is separate from the unknown words: "make it darker and fix
// the car", or "make it darker kthx", but not "make it darker around the edges".
func separate(c clause, at int) bool {
	near := c.near(at)
	before := at - 1
	for before >= 0 && c[before].class == filler && !c[before].whole {
		before--
	}
	plain := near.count(content) == 0 || before >= 0 && c[before].whole && !near.any(func(p part) bool {
		return p.in("insides") || p.in("limits") || len(p.arguments) > 0
	})
	return plain && near.whole() && !c[at].isColor() && !c[max(0, at-1)].in("articles")
}

// strength returns the strength of the change with an index. The words before it give the strength or, if there are
// none, the words after it.
func (c clause) strength(at int) float64 {
	if s := c[at].strength; s != 0 {
		return s
	}
	for before := at - 1; before >= 0 && c[before].class == filler && !c[at].names("zus"); before-- {
		if s := c[before].strength; s != 0 {
			return s
		}
	}
	for after := at + 1; after < len(c) && c[after].class == filler; after++ {
		if s := c[after].strength; s != 0 {
			if next := after + 1; next < len(c) && c[next].means.modifier != nil {
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
func quote(prompt string, all clause, dropped map[int]bool) []string {
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
		if i > 0 && p.first.sentence != all[i-1].last.sentence || !dropped[p.first.from] && !plain {
			end()
		}
		// A quote does not start or end with a filler word, unless the filler word starts a clause.
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
