package awscost

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Money formats dollars with the digits that matter.
func Money(dollars float64) string {
	switch {
	case dollars == 0:
		return "$0"
	case dollars < 0.0001:
		return "below $0.0001"
	case dollars < 1:
		return fmt.Sprintf("$%.4f", dollars)
	}
	return fmt.Sprintf("$%.2f", dollars)
}

// Sums formats the dollars of a month: cents, and commas.
func Sums(dollars float64) string {
	whole, cents := math.Modf(math.Round(dollars*100) / 100)
	return fmt.Sprintf("$%s.%02.0f", Grouped(whole), cents*100)
}

// Amount formats a quantity without insignificant digits.
func Amount(n float64) string {
	if n >= 1000 {
		return Grouped(n)
	}
	return Number(Significant(n))
}

// Number writes a number in full, never as 1e-05.
func Number(n float64) string {
	text := fmt.Sprintf("%.8f", n)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Grouped writes a whole number with commas.
func Grouped(n float64) string {
	digits := fmt.Sprintf("%.0f", n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Sorted returns the items, the most expensive first.
func Sorted(q Quantities) []Item {
	return slices.SortedFunc(maps.Keys(q), func(a, b Item) int {
		return cmp.Or(cmp.Compare(Dollars(b, q[b]), Dollars(a, q[a])), cmp.Compare(a, b))
	})
}

// Tidy rounds to significant digits, so that counts.json is readable.
func (s *Scenario) Tidy() {
	for call, n := range s.Calls {
		s.Calls[call] = Significant(n)
	}
	s.Quantities.Tidy()
}

// Tidy rounds to significant digits, and leaves out what is 0.
func (q Quantities) Tidy() {
	for item, n := range q {
		if q[item] = Significant(n); n == 0 {
			delete(q, item)
		}
	}
}

// Significant rounds to four digits.
func Significant(n float64) float64 {
	if n == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(n))))
	return math.Round(n*scale) / scale
}
