package look

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// arguments are the details that a prompt gives for an ordinary edit.
type arguments struct {
	numbers []float64
	// unit is the kind of the numbers, or 0 if the prompt names no unit.
	unit kinds
	// percent means that the numbers are percentages. absolute means that they follow "to" instead of "by". sign is the
	// character before a percentage, such as '-'.
	percent, absolute bool
	sign              byte
	// wanted is the requested ratio of width to height.
	wanted float64
	color  string
	// across and down are -1, 0 or 1. placed is true if the prompt names a position.
	across, down int
	placed       bool
	// counter means counterclockwise. back means that the picture already has the angle, which is undone.
	counter, back bool
	text          string
	scale         float64
	// box is the color of a text's box. blurred means that bars show the blurred picture.
	box     string
	blurred bool
	// tall means that a number of pixels is a height.
	tall bool
	// lasts is the length of the result that a speed aims at, in seconds, or 0.
	lasts  float64
	during Span
	// removed and scene are used for the background.
	removed bool
	scene   string
	// clear means that the prompt asks for transparency.
	clear bool
}

// argument is an argument that a prompt gives. An argument such as "left" may be of either of two kinds.
type argument struct {
	kinds kinds
	set   func(*arguments)
}

func (a arguments) number(otherwise float64) float64 {
	if len(a.numbers) == 0 || a.unit&angle == 0 && a.numbers[0] < 0 {
		return otherwise
	}
	return a.numbers[0]
}

func (a arguments) factor(otherwise, most float64) float64 {
	by := a.number(otherwise)
	if a.percent {
		by /= 100
	}
	if by > 0 && by < 1 {
		by = 1 / by
	}
	if by <= 1 {
		by = otherwise
	}
	return min(by, most)
}

func (a arguments) slower() float64 {
	if by := a.number(100); a.percent && !a.absolute && by < 100 { // "by 25%"
		return min(100/(100-by), 8)
	}
	return a.factor(2, 8)
}

func (a arguments) faster() float64 {
	if by := a.number(0); a.percent && !a.absolute && by <= 100 {
		return 1 + by/100
	}
	return a.factor(2, 16)
}

func (a arguments) zoom() float64 { return a.factor(1.5, 4) }

// volume returns the factor of a louder sound, or of a quieter one.
func (a arguments) volume(louder bool) float64 {
	by := a.number(2)
	if a.percent {
		by /= 100
	}
	if part := by < 1 || a.percent; part && !a.absolute { // "by half"
		by = 1 + map[bool]float64{true: by, false: -by}[louder]
	} else if !a.absolute && !louder {
		by = 1 / by
	}
	return max(0, min(by, 8))
}

func (a arguments) repeats() int { return max(2, min(int(a.number(2)), 20)) }

// degrees returns an angle clockwise, from 0 to 360.
func (a arguments) degrees() float64 {
	by := a.number(90)
	if (a.counter || a.across < 0) != a.back {
		by = -by
	}
	return math.Mod(math.Mod(by, 360)+360, 360)
}

func (a arguments) rotation() string {
	by := math.Remainder(a.degrees(), 360)
	side := map[bool]string{by > 0 && by < 180: " right", by < 0 && by > -180: " left"}[true]
	return fmt.Sprintf("rotate %g°%s", math.Abs(by), side)
}

// resized returns the sides of a picture that gets the requested number of pixels.
func (a arguments) resized(width, height float64) (float64, float64) {
	switch side := a.number(width); {
	case len(a.numbers) > 1:
		return side, a.numbers[1]
	case a.tall:
		return width * side / height, side
	default:
		return side, height * side / width
	}
}

func (a arguments) pixels() string {
	if len(a.numbers) > 1 {
		return fmt.Sprintf("%gx%g", a.numbers[0], a.numbers[1])
	}
	return fmt.Sprintf("%g pixels %s", a.number(0), map[bool]string{true: "high", false: "wide"}[a.tall])
}

func (a arguments) proportion(otherwise float64) float64 { return cmp.Or(a.wanted, otherwise) }

func (a arguments) shape(otherwise float64) string {
	shape := a.proportion(otherwise)
	for known := range strings.FieldsSeq("35:45 1:1 16:9 9:16 4:3 3:4 4:5 5:4 3:2 2:3 21:9") {
		var across, down float64
		if _, err := fmt.Sscanf(known, "%g:%g", &across, &down); err == nil && math.Abs(shape-across/down) < 1e-6 {
			return known
		}
	}
	return fmt.Sprintf("%.2f:1", shape)
}

func (a arguments) colorOr(otherwise string) string { return cmp.Or(a.color, otherwise) }

func (a arguments) title() string {
	size := map[bool]string{a.scale > 1: "large", a.scale > 0 && a.scale < 1: "small"}[true]
	return strings.Join(strings.Fields(size+" "+a.color+" text"), " ") + " “" + shorten(a.text) + "”"
}

// units maps words to kinds of numbers.
var units = sync.OnceValue(func() map[string]kinds {
	known := map[string]kinds{"°": angle}
	all := map[string]kinds{"degrees": angle, "seconds": seconds, "times": factor, "pixels": pixels}
	for list, unit := range all {
		for word := range lists()[list] {
			known[word] = unit
		}
	}
	return known
})

// directions maps words to positions, turns, shapes and sizes of letters.
var directions = sync.OnceValue(func() map[string]argument {
	known := map[string]argument{}
	at := func(list string, kind kinds, change func(*arguments)) {
		for word := range lists()[list] {
			known[word] = argument{kind, change}
		}
	}
	for list, kind := range map[string]kinds{"starts": start, "ends": end, "widths": axis, "clockwise": place | angle} {
		at(list, kind, func(*arguments) {})
	}
	at("left", place|angle, func(a *arguments) { a.across, a.placed = -1, true })
	at("right", place|angle, func(a *arguments) { a.across, a.placed = 1, true })
	at("top", place|angle, func(a *arguments) { a.down, a.placed = -1, true })
	at("bottom", place|angle, func(a *arguments) { a.down, a.placed = 1, true })
	at("center", place|angle, func(a *arguments) { a.placed = true })
	at("corner", place|angle, func(a *arguments) {
		if !a.placed {
			a.across, a.down, a.placed = 1, 1, true
		}
	})
	at("heights", axis, func(a *arguments) { a.tall = true })
	at("counterclockwise", place|angle, func(a *arguments) { a.counter = true })
	for list, by := range map[string]float64{"large": 1.6, "huge": 2.4, "small": 0.6} {
		at(list, scale, func(a *arguments) { a.scale = by })
	}
	for list, wanted := range map[string]float64{"squares": 1, "uprights": 9.0 / 16, "wides": 16.0 / 9} {
		at(list, ratio, func(a *arguments) { a.wanted = wanted })
	}
	return known
})

// argumentAt returns the argument at the beginning of tokens, and the number of its tokens.
func argumentAt(prompt string, tokens []token) (argument, int) {
	if found, ok := directions()[tokens[0].text]; ok {
		return found, 1
	}
	for _, read := range []func([]token) (argument, int){fractionAt, shapeAt} {
		if a, length := read(tokens); length > 0 {
			return a, length
		}
	}
	return numberAt(prompt, tokens)
}

// counted returns the argument for a number with a unit.
func counted(number float64, unit kinds) argument {
	return argument{unit, func(a *arguments) { a.numbers, a.unit = append(a.numbers, number), unit }}
}

// fractionAt reads numbers without digits: "twice", "half a second", "quarter".
func fractionAt(tokens []token) (argument, int) {
	word, next := tokens[0].text, 1
	for list, number := range map[string]float64{"doubles": 2, "triples": 3, "quadruples": 4} {
		if in(list, word) {
			times := counted(number, 0)
			times.kinds = factor | share
			return times, 1
		}
	}
	switch second := len(tokens) > 1 && isSecond(tokens[1].text); {
	case in("pairs", word):
		return counted(2, seconds), 1
	case (in("quarters", word) || in("thirds", word)) && !second: // not "the third second"
		return counted(map[bool]float64{true: 0.25, false: 1.0 / 3}[in("quarters", word)], share), 1
	case !in("halves", word):
		return argument{}, 0
	}
	for next < len(tokens) && in("articles", tokens[next].text) { // "half a second"
		next++
	}
	if next < len(tokens) && isSecond(tokens[next].text) {
		return counted(0.5, seconds), next + 1
	}
	half := counted(0.5, share)
	half.kinds |= factor
	return half, 1
}

// shapeAt reads two numbers: a ratio such as "16:9", a size such as "1920x1080" or "35 x 45 mm", or a time such as
// "0:05".
func shapeAt(tokens []token) (argument, int) {
	word, size := tokens[0].text, 1
	if len(tokens) > 3 && in("bys", tokens[1].text) && inAny(tokens[3].text, "millimeters", "pixels") {
		word, size = word+"x"+tokens[2].text, 3
	}
	across, down, _ := strings.Cut(strings.Replace(word, "x", ":", 1), ":")
	w, err := strconv.ParseFloat(across, 64)
	h, err2 := strconv.ParseFloat(down, 64)
	switch {
	case err != nil || err2 != nil, !isDigit(across, 0) || !isDigit(down, 0), w > 1e6 || h > 1e6: // not "nan" or "inf"
		return argument{}, 0
	case len(down) == 2 && (across[0] == '0' || down[0] == '0'):
		return counted(60*w+h, seconds), 1
	case !(w > 0 && h > 0 && w/h >= 0.25 && w/h <= 4):
		return argument{}, 0
	}
	if len(tokens) > size && in("millimeters", tokens[size].text) {
		size++
	} else if w > 32 {
		return argument{pixels, func(a *arguments) { a.numbers, a.wanted = []float64{w, h}, w/h }}, size
	}
	return argument{ratio, func(a *arguments) { a.wanted = w / h }}, size
}

// numberAt reads a number with or without a unit: "3 s", "90°", "20%", "three seconds", "2x".
func numberAt(prompt string, tokens []token) (argument, int) {
	word, next := tokens[0].text, ""
	if len(tokens) > 1 {
		next = tokens[1].text
	}
	if n := numberOf(word); n > 0 && (units()[next] != 0 || in("minutes", next) || in("ordinals", next)) {
		word = strconv.Itoa(n)
	}
	if by, found := strings.CutPrefix(word, "x"); found && isDigit(by, 0) {
		word = by + "x"
	}
	digits := strings.TrimRightFunc(word, unicode.IsLetter)
	number, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", "."), 64)
	unit, known := units()[word[len(digits):]]
	if err != nil || number > 1e6 || !known && digits != word {
		return argument{}, 0
	}
	rest := strings.TrimLeft(prompt[tokens[0].to:], " \u00a0\u202f")
	length, percent := 1, strings.HasPrefix(rest, "%")
	if digits == word && !percent && !strings.HasPrefix(rest, "°") && next != "" {
		length = 2
		switch unit = units()[next]; {
		case in("minutes", next):
			unit, number = seconds, 60*number
		case in("decibels", next):
			unit, number = factor, math.Pow(10, number/20)
		case unit == 0, len(tokens) > 2 && in("paces", tokens[2].text):
			length = 1
		}
		percent = in("percents", next)
	}
	sign := prompt[max(0, tokens[0].from-1)]
	if sign == '-' && !percent && !isDigit(prompt, tokens[0].from-2) { // not "1-3 s"
		number = -number
	}
	switch {
	case percent:
		unit = factor
	case strings.HasPrefix(rest, "°"):
		unit = angle
	}
	kind := unit
	if unit == 0 {
		kind = angle | seconds | factor
	}
	return argument{kind, func(a *arguments) {
		a.numbers, a.unit, a.percent, a.sign = append(a.numbers, number), unit, percent, sign
	}}, length
}

// degree returns the strength of a change that a word gives, or 0.
func degree(word string) float64 {
	switch {
	case in("slightly", word), in("smalls", word):
		return 0.5
	case in("strongly", word):
		return 1.6
	}
	return 0
}
