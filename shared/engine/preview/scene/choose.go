package scene

import (
	_ "embed"
	"strings"
	"unicode"

	"cutroom/shared/engine/preview/look/noise"
)

// Choose returns the scene for a prompt. Words choose the place and the time of day. The rest of the prompt and the
// seed vary the scene, so that no two scenes are the same.
func Choose(prompt string, seed uint32) Scene {
	words := wordsOf(prompt)
	source := noise.NewSource(uint64(seed), 0)
	for _, word := range words {
		for _, r := range word {
			source = noise.NewSource(source.Uint64(), uint64(r))
		}
	}
	own := uint32(source.Uint64())
	light := lights.first(words)
	if light == "" {
		light = []string{"sunset", "dawn", "day", "magic", "night"}[source.Intn(5)]
	}
	switch places.first(words) {
	case "bay":
		return bay(own, light)
	case "mountains":
		return mountains(own, light, snow.first(words) != "")
	case "city":
		return city(own, light)
	case "aurora":
		return aurora(own)
	case "nebula":
		return nebula(own)
	}
	return flow(own)
}

func wordsOf(prompt string) []string {
	return strings.FieldsFunc(strings.ToLower(prompt), func(r rune) bool { return !unicode.IsLetter(r) })
}

// meanings maps words to meanings, such as the name of a place.
type meanings map[string]string

//go:embed words.txt
var wordsFile string

// meaningsOf returns the meanings of a kind in the file.
func meaningsOf(kind string) meanings {
	m := meanings{}
	for line := range strings.Lines(wordsFile) {
		name, list, _ := strings.Cut(line, ": ")
		if meaning, found := strings.CutPrefix(name, kind+" "); found {
			for _, word := range strings.Fields(list) {
				m[word] = meaning
			}
		}
	}
	return m
}

var lights, places, snow = meaningsOf("lights"), meaningsOf("places"), meaningsOf("snow")

func (m meanings) first(words []string) string {
	for _, word := range words {
		if meaning, known := m[word]; known {
			return meaning
		}
	}
	return ""
}
