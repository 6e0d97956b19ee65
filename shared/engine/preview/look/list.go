package look

import "slices"

type Entry struct {
	Name string
	// Words lists English phrases for the look. Names lists phrases in other languages.
	Words, Names []string
	// Medium is true for artistic media such as paint. A prompt gets at most one medium and a few other looks.
	Medium bool
}

// List returns the looks in order of application.
func List() []Entry {
	english, foreign := phrasesIn(phrasesFile), phrasesIn(namesFile)
	var list []Entry
	for _, e := range lexicon() {
		words := slices.Concat(english[e.name], english[e.name+"?"])
		list = append(list, Entry{Name: e.name, Words: words, Names: foreign[e.name], Medium: e.medium})
	}
	return list
}

// Changes returns the words of each small change, such as "brighter", and of each ordinary edit. The first word in
// each list is the name.
func Changes() [][]string {
	english := phrasesIn(phrasesFile)
	var list [][]string
	for _, m := range modifiers() {
		list = append(list, append([]string{m.name}, english[m.name]...))
	}
	for _, o := range operations() {
		list = append(list, append([]string{o.name}, english[o.name]...))
	}
	return list
}
