package look

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// listsFile has the words that change a prompt's meaning, by the name of their list.
//
//go:embed lists.txt
var listsFile string

// fillersFile has the words that say nothing about a picture's appearance.
//
//go:embed fillers.txt
var fillersFile string

var lists = sync.OnceValue(func() map[string]map[string]bool {
	all := map[string]map[string]bool{"fillers": set(fillersFile)}
	for line := range strings.Lines(listsFile) {
		if name, list, found := strings.Cut(line, ": "); found && !strings.HasPrefix(line, "#") {
			all[name] = set(list)
			if phrases := strings.Split(list, ","); len(phrases) > 1 {
				all[name] = map[string]bool{}
				for _, phrase := range phrases {
					all[name][strings.Join(words(phrase), " ")] = true
				}
			}
		}
	}
	return all
})

// context is a rule about a word's class next to other words. A line of lists.txt has the word, its class there, the
// place of the neighbors ("before" or "after" the word, or "near": up to two words later) and the neighbors.
type context struct {
	word, place string
	class       class
	neighbors   map[string]bool
}

var contexts = sync.OnceValue(func() []context {
	named := map[string]class{"filler": filler, "joiner": joiner, "thing": thing, "negation": negation}
	var found []context
	for name, list := range lists() {
		if fields := strings.Fields(name); len(fields) == 3 {
			found = append(found, context{words(fields[0])[0], fields[2], named[fields[1]], list})
		}
	}
	return found
})

// fits reports whether the rule applies to the word with an index.
func (c context) fits(texts []string, at int) bool {
	near := texts[at+1 : min(at+2, len(texts))]
	switch c.place {
	case "after":
		near = texts[max(0, at-1):at]
	case "near":
		near = texts[at+1 : min(at+3, len(texts))]
	}
	return slices.ContainsFunc(near, func(word string) bool { return c.neighbors[word] })
}

func in(list, word string) bool { return lists()[list][word] }

// inAny reports whether one of the lists has a word.
func inAny(word string, names ...string) bool {
	return slices.ContainsFunc(names, func(list string) bool { return in(list, word) })
}
