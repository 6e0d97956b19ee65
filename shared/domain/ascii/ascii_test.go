package ascii_test

import (
	"regexp"
	"testing"

	"cutroom/shared/domain/ascii"
)

func TestOnlyAgreesWithRegularExpression(t *testing.T) {
	form := regexp.MustCompile(`\A[0-9A-Za-z._-]+\z`)
	texts := []string{"", "ä", "a\n", "abc.d_e-f", "a b"}
	for b := range 256 {
		c := string([]byte{byte(b)})
		texts = append(texts, c, "a"+c, c+"a", "a"+c+"a")
	}
	for _, text := range texts {
		if got, want := ascii.Only(text, "._-"), form.MatchString(text); got != want {
			t.Errorf("Only(%q) = %v, want %v", text, got, want)
		}
	}
}
