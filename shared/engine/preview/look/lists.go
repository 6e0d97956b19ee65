package look

import (
	_ "embed"
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

func in(list, word string) bool { return lists()[list][word] }
