package scene

import (
	"maps"
	"slices"
)

type Result struct {
	// Understood names the requested place and light. It may be empty.
	Understood []string

	place, light string
}

func Names() []string { return slices.Compact(slices.Sorted(maps.Values(places))) }

func Read(prompt string) Result {
	words := wordsOf(prompt)
	r := Result{place: places.first(words), light: lights.first(words)}
	for _, name := range []string{r.place, r.light} {
		if name != "" {
			r.Understood = append(r.Understood, name)
		}
	}
	return r
}

// Place returns the subject that the words name, such as "bay", or "".
func Place(prompt string) string { return places.first(wordsOf(prompt)) }

// Shows reports whether a prompt's word names something in the scene.
func (r Result) Shows(word string) bool {
	at := []string{word}
	return r.place != "" && places.first(at) == r.place || r.light != "" && lights.first(at) == r.light ||
		r.place == "mountains" && snow.first(at) != "" || r.place == "aurora" && places.first(at) == "mountains"
}
