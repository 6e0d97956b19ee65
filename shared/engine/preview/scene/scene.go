// Package scene paints moving pictures: landscapes and abstractions that are computed from a seed,
// point by point, like a fragment shader. It stands in for a text-to-video model.
//
// A scene is a pure function of its seed, the position in the picture and the time, so the same
// request produces the same frames.
package scene

import (
	"cmp"
	"context"
	_ "embed"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sync/errgroup"

	"cutroom/shared/engine/preview/look/noise"
	"cutroom/shared/platform/panics"
)

// Scene prepares a scene for a time in seconds and an aspect ratio (width / height).
type Scene func(seconds, aspect float64) shader

// shader returns the color at x, from 0 to the aspect ratio, and y, from 0 at the top to 1.
type shader func(x, y float64) rgb

// Paint draws the scene at the given time, in seconds, into the frame: rows from the top, three bytes per pixel.
func (s Scene) Paint(ctx context.Context, frame []byte, width, height int, seconds float64) error {
	shade := s(seconds, float64(width)/float64(height))
	scale := 1 / float64(height)
	group, ctx := errgroup.WithContext(ctx)
	// Leave half of the processors to a server in the same process.
	group.SetLimit(max(1, runtime.GOMAXPROCS(0)/2))
	const band = 16
	for top := 0; top < height; top += band {
		group.Go(func() (err error) {
			defer panics.Error(&err)
			for y := top; y < min(top+band, height); y++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				row := frame[y*width*3:][:width*3]
				for x := range width {
					c := shade((float64(x)+0.5)*scale, (float64(y)+0.5)*scale)
					// A little noise before rounding prevents banding in smooth skies.
					dither := float64(noise.Mix(uint64(y*width+x))&0xff)/255 - 0.5
					row[x*3], row[x*3+1], row[x*3+2] = level(c.r, dither), level(c.g, dither), level(c.b, dither)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func level(v, dither float64) byte { return byte(clamp(v+dither/255)*255 + 0.5) }

// Choose returns the scene for a prompt. Words choose the place and the time of day. The rest of the prompt and the
// seed vary the scene, so that no two scenes are the same.
func Choose(prompt string, seed uint32) Scene {
	words := wordsOf(prompt)
	source := noise.NewSource(uint64(seed), 0)
	for _, r := range strings.Join(words, "") {
		source = noise.NewSource(source.Uint64(), uint64(r))
	}
	own := uint32(source.Uint64())
	light := cmp.Or(lights.first(words), []string{"sunset", "dawn", "day", "magic", "night"}[source.Intn(5)])
	switch place := places.first(words); place {
	case "bay":
		return bay(own, light)
	case "mountains", "forest":
		return mountains(own, light, snow.first(words) != "", place == "forest")
	case "city":
		return city(own, light)
	case "aurora":
		return aurora(own)
	case "nebula":
		return nebula(own)
	}
	return flow(own)
}

// trees separates words for a forest in scripts without spaces.
var trees = strings.NewReplacer("森", " 森 ", "林", " 林 ", "숲", " 숲 ")

func wordsOf(prompt string) []string {
	return strings.FieldsFunc(trees.Replace(strings.ToLower(prompt)), func(r rune) bool { return !unicode.IsLetter(r) })
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

// first returns the first meaning, but prefers a forest to other mountain landscapes, such as "misty".
func (m meanings) first(words []string) (found string) {
	for _, word := range words {
		if meaning := m[word]; found == "" || found == "mountains" && meaning == "forest" {
			found = meaning
		}
	}
	return found
}

type Result struct {
	// Understood names the requested place and light. It may be empty.
	Understood []string

	place, light string
}

func Names() []string { return slices.Compact(slices.Sorted(maps.Values(places))) }

func Read(prompt string) Result {
	words := wordsOf(prompt)
	r := Result{place: places.first(words), light: lights.first(words)}
	r.Understood = slices.DeleteFunc([]string{r.place, r.light}, func(name string) bool { return name == "" })
	return r
}

// Place returns the subject that the words name, such as "bay", or "".
func Place(prompt string) string { return places.first(wordsOf(prompt)) }

// Shows reports whether a prompt's word names something in the scene.
func (r Result) Shows(word string) bool {
	at := []string{word}
	return r.place != "" && places.first(at) == r.place || r.light != "" && lights.first(at) == r.light ||
		(r.place == "mountains" || r.place == "forest") && snow.first(at) != "" ||
		(r.place == "aurora" || r.place == "forest") && places.first(at) == "mountains"
}
