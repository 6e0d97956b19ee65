package understanding_test

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine/preview/understanding"
	"cutroom/shared/testkit/pixeltest"
)

func TestPromptsAreUnderstood(t *testing.T) {
	table, err := os.ReadFile("testdata/prompts.txt")
	pixeltest.Require(t, err)
	kinds := map[string]catalog.Kind{"image": catalog.Image, "video": catalog.TextToVideo, "tryOn": catalog.TryOn}
	notices := map[string]string{
		"unfollowed": "Nothing was changed: the preview engine does not follow “",
		"declined":   "Nothing was changed, as the prompt asks.",
		"scenes":     "The preview engine paints one of a few scenes: ", "-": "",
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if strings.HasPrefix(line, "#") || len(fields) != 5 {
			continue
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		kind, prompt, understood, ignored, notice := fields[0], fields[1], fields[2], fields[3], fields[4]
		if short, found := notices[notice]; found {
			notice = short
		}
		got := understanding.Of(understanding.Request{
			Kind: cmp.Or(kinds[kind], catalog.Edit), Prompt: prompt,
			Live: kind == "live", Reference: kind == "reference",
		})
		if u, i := strings.Join(got.Understood, "; "), strings.Join(got.Ignored, "; "); u != understood || i != ignored {
			t.Errorf("%s %q: understood %q, ignored %q; want %q, %q", kind, prompt, u, i, understood, ignored)
		}
		if !strings.HasPrefix(got.Notice, notice) || notice == "" && got.Notice != "" {
			t.Errorf("%s %q: the notice is %q, want %q …", kind, prompt, got.Notice, notice)
		}
		if len(got.Ignored) > 0 && got.Notice == "" {
			t.Errorf("%s %q: the notice does not say that %q is ignored", kind, prompt, got.Ignored)
		}
	}
}
