package job

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The lengths of the two parts of a result's name at most, in bytes: together they
// fit into a file name of every system.
const (
	maxSourceName = 100
	maxPromptName = 60
)

// ResultName returns a name for the file of a job's result, without an extension:
// that of the video or image it was made from, and the first words of the prompt,
// such as "beach-watercolor" (docs/contract/jobs.md#results). It is made of
// letters and digits of any script, "_" and "-". It is the job's id if there is
// neither.
func (j Job) ResultName() string {
	source := j.Request.Inputs["data"].Name
	source = cut(worded(strings.TrimSuffix(source, path.Ext(source))), maxSourceName)
	prompt := cut(worded(strings.ToLower(j.Request.Prompt)), maxPromptName)
	if name := strings.Trim(source+"-"+prompt, "-"); name != "" {
		return name
	}
	return j.ID
}

// worded returns the words of a text, joined by "-".
func worded(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r)
	}), "-")
}

// cut returns as many whole words of the text as fit into so many bytes, or the
// beginning of a first word that does not.
func cut(words string, most int) string {
	if len(words) <= most {
		return words
	}
	kept := words[:most+1]
	if end := strings.LastIndexByte(kept, '-'); end > 0 {
		return kept[:end]
	}
	kept = kept[:most]
	for !utf8.ValidString(kept) {
		kept = kept[:len(kept)-1]
	}
	return kept
}
