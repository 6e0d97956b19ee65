package look_test

import (
	"strings"
	"testing"

	"cutroom/shared/engine/preview/look"
)

// Anyone may send a prompt of the maximum length.
func TestParsingUsesLittleMemoryPerWord(t *testing.T) {
	const words, most = 4000, 10
	for name, read := range map[string]func(string) look.Result{
		"a look": func(prompt string) look.Result { return look.Read(prompt, nil) }, "cloth": look.ReadCloth,
	} {
		for _, prompt := range []string{strings.Repeat("水", words), strings.Repeat("a ", words)} {
			read(prompt) // builds the word lists before the measurement
			if made := testing.AllocsPerRun(3, func() { read(prompt) }); made > words*most {
				t.Errorf("%s of %.6s: %.0f allocations, %.0f a word", name, prompt, made, made/words)
			}
		}
	}
}
