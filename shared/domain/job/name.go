package job

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Both lengths are in bytes. Together they fit in a file name on every system.
const (
	maxSourceName = 100
	maxPromptName = 60
)

// ResultName joins the input's name and the first words of the prompt, as in "beach-watercolor"
// (docs/contract/jobs.md#results). It contains only letters, digits, "_" and "-", and has no
// extension. If there is neither a name nor a prompt, it returns the job's id.
func (j Job) ResultName() string {
	source := j.Request.Inputs["data"].Name
	source = cut(worded(strings.TrimSuffix(source, path.Ext(source))), maxSourceName)
	prompt := cut(worded(strings.ToLower(j.Request.Prompt)), maxPromptName)
	if name := strings.Trim(source+"-"+prompt, "-"); name != "" {
		return name
	}
	return j.ID
}

func worded(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r)
	}), "-")
}

// cut returns as many complete words as fit in the given number of bytes. If the first word is longer, it returns the
// start of that word.
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
