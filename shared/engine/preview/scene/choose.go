package scene

import (
	"strings"
	"unicode"

	"cutroom/shared/engine/preview/look/noise"
)

// Choose returns the scene that a text asks for. Words choose the place and the
// time of day; the rest of the text and the seed vary the scene, so that two
// texts, or two seeds, never produce the same one.
func Choose(prompt string, seed uint32) Scene {
	words := strings.FieldsFunc(strings.ToLower(prompt), func(r rune) bool { return !unicode.IsLetter(r) })
	source := noise.NewSource(uint64(seed), 0)
	for _, word := range words {
		for _, r := range word {
			source = noise.NewSource(source.Uint64(), uint64(r))
		}
	}
	own := uint32(source.Uint64())
	light := first(words, map[string]string{
		"sunset": "sunset", "dusk": "sunset", "evening": "sunset", "golden": "sunset", "autumn": "sunset", "fire": "sunset",
		"sunrise": "dawn", "dawn": "dawn", "morning": "dawn", "spring": "dawn", "pastel": "dawn", "soft": "dawn",
		"day": "day", "noon": "day", "sunny": "day", "summer": "day", "blue": "day", "clear": "day",
		"storm": "storm", "stormy": "storm", "rain": "storm", "rainy": "storm", "gray": "storm", "grey": "storm",
		"noir":  "storm",
		"night": "night", "midnight": "night", "moon": "night", "moonlight": "night", "dark": "night", "stars": "night",
		"magic": "magic", "magical": "magic", "fantasy": "magic", "dream": "magic", "dreamy": "magic", "fairy": "magic",
		"pink": "magic", "purple": "magic",
	})
	if light == "" {
		light = []string{"sunset", "dawn", "day", "magic", "night"}[source.Intn(5)]
	}
	place := first(words, map[string]string{
		"sea": "bay", "ocean": "bay", "beach": "bay", "bay": "bay", "boat": "bay", "ship": "bay", "sail": "bay",
		"sailing": "bay", "lake": "bay",
		"coast": "bay", "harbor": "bay", "harbour": "bay", "island": "bay", "water": "bay", "waves": "bay", "river": "bay",
		"lighthouse": "bay",
		"desert":     "dunes", "dune": "dunes", "dunes": "dunes", "sand": "dunes", "sahara": "dunes", "mars": "dunes",
		"camel": "dunes", "camels": "dunes", "egypt": "dunes",
		"mountain": "mountains", "mountains": "mountains", "forest": "mountains", "hills": "mountains", "alps": "mountains",
		"trees":  "mountains",
		"valley": "mountains", "wood": "mountains", "woods": "mountains", "nature": "mountains", "landscape": "mountains",
		"dragon": "mountains",
		"castle": "mountains", "winter": "mountains", "snow": "mountains", "snowy": "mountains", "fog": "mountains",
		"misty": "mountains", "fox": "mountains", "wolf": "mountains", "bear": "mountains",
		"city": "city", "street": "city", "neon": "city", "cyberpunk": "city", "skyline": "city", "tokyo": "city",
		"traffic": "city", "urban": "city",
		"car": "city", "cars": "city", "downtown": "city", "building": "city", "buildings": "city", "robot": "city",
		"futuristic": "city", "york": "city",
		"aurora": "aurora", "northern": "aurora", "arctic": "aurora", "iceland": "aurora", "polar": "aurora",
		"space": "nebula", "galaxy": "nebula", "nebula": "nebula", "planet": "nebula", "universe": "nebula",
		"cosmic": "nebula", "cosmos": "nebula",
		"astronaut": "nebula", "spaceship": "nebula", "rocket": "nebula", "alien": "nebula", "star": "nebula",
		"stars":    "nebula",
		"abstract": "flow", "ink": "flow", "liquid": "flow", "fluid": "flow", "marble": "flow", "swirl": "flow",
		"paint": "flow", "smoke": "flow", "lava": "flow",
	})
	somebody := first(words, map[string]string{
		"person": "yes", "woman": "yes", "girl": "yes", "man": "yes", "boy": "yes", "child": "yes", "someone": "yes",
		"people": "yes", "lady": "yes",
	}) != ""
	switch place {
	case "bay":
		return Bay(own, light, somebody)
	case "dunes":
		return dunes(own, light)
	case "mountains":
		snowy := first(words, map[string]string{"winter": "yes", "snow": "yes", "snowy": "yes", "ice": "yes"}) != ""
		return mountains(own, light, snowy)
	case "city":
		return city(own, light)
	case "aurora":
		return aurora(own)
	case "nebula":
		return nebula(own)
	case "":
		if somebody {
			return Bay(own, light, true)
		}
	}
	return flow(own)
}

// first returns the meaning of the first word that has one, else nothing.
func first(words []string, meaning map[string]string) string {
	for _, word := range words {
		if m, ok := meaning[word]; ok {
			return m
		}
	}
	return ""
}
