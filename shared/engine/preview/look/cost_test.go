package look_test

import (
	"strings"
	"testing"

	"cutroom/shared/engine/preview/look"
)

// Anyone may send a prompt of the maximum length, so parsing it must need little memory.
func TestParsingUsesLittleMemoryPerWord(t *testing.T) {
	const words, most = 4000, 10
	for _, prompt := range []string{strings.Repeat("水", words), strings.Repeat("a ", words)} {
		look.Read(prompt, nil) // builds the lists on first use
		if made := testing.AllocsPerRun(3, func() { look.Read(prompt, nil) }); made > words*most {
			t.Errorf("%.6s: %.0f allocations, %.0f a word", prompt, made, made/words)
		}
	}
}
