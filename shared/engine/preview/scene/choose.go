package scene

import (
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
	case "dunes":
		return dunes(own, light)
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

// meaningsOf maps each word of a list to the meaning of the list. The words in a list are separated by spaces.
func meaningsOf(lists map[string]string) meanings {
	m := meanings{}
	for meaning, list := range lists {
		for _, word := range strings.Fields(list) {
			m[word] = meaning
		}
	}
	return m
}

// These are the times of day and the weather.
var lights = meaningsOf(map[string]string{
	"sunset": "sunset dusk evening golden autumn",
	"dawn":   "sunrise dawn morning spring pastel soft",
	"day":    "day noon sunny summer blue clear",
	"storm":  "storm stormy rain rainy gray grey noir",
	"night":  "night midnight moon moonlight dark stars",
	"magic":  "magic magical fantasy dream dreamy fairy pink purple",
})

var places = meaningsOf(map[string]string{
	"bay":       "sea ocean beach bay boat sail sailing lake coast island water waves river",
	"dunes":     "desert dune dunes sand sahara",
	"mountains": "mountain mountains forest hills alps trees valley wood woods nature landscape winter snow snowy fog misty",
	"city":      "city street neon cyberpunk skyline urban downtown building buildings futuristic",
	"aurora":    "aurora northern arctic polar",
	"nebula":    "space galaxy nebula planet universe cosmic cosmos star stars",
	"flow":      "abstract ink liquid fluid marble swirl paint lava",
})

var snow = meaningsOf(map[string]string{"yes": "winter snow snowy ice"})

func (m meanings) first(words []string) string {
	for _, word := range words {
		if meaning, known := m[word]; known {
			return meaning
		}
	}
	return ""
}
