package job_test

import (
	"strings"
	"testing"

	"cutroom/shared/domain/job"
)

func TestResultNameJoinsInputAndPrompt(t *testing.T) {
	const id = "job_01K00000000000000000000D0E"
	for _, c := range []struct{ source, prompt, want string }{
		{"beach.mp4", "watercolor", "beach-watercolor"},
		{"IMG_0123.MOV", "A watercolor, please!", "IMG_0123-a-watercolor-please"},
		{"", "a storm at sea", "a-storm-at-sea"},
		{"beach.mp4", "", "beach"},
		{"", "", id},
		{"", "…!?", id},
		{"..", `"; rm -rf / \ : * <b> | $(x)`, "rm-rf-b-x"},
		{"My clip (2).tar.gz", "x", "My-clip-2-tar-x"},
		{"été à la mer.webm", "Aquarelle d’été", "été-à-la-mer-aquarelle-d-été"},
		{"夏の海.mp4", "水彩画にして", "夏の海-水彩画にして"},
		{"a\u202egpj.mp4", "x\r\nSet-Cookie: y", "a-gpj-x-set-cookie-y"},
		{strings.Repeat("a", 300) + ".mp4", "", strings.Repeat("a", 100)},
		{"", strings.Repeat("word ", 100), strings.TrimSuffix(strings.Repeat("word-", 12), "-")},
		{"", strings.Repeat("é", 100), strings.Repeat("é", 30)},
	} {
		j := job.Job{ID: id, Request: job.Request{Prompt: c.prompt}}
		if c.source != "" {
			j.Request.Inputs = map[string]job.Input{"data": {Name: c.source}}
		}
		if got := j.ResultName(); got != c.want {
			t.Errorf("%q with %q: %q, want %q", c.source, c.prompt, got, c.want)
		}
	}
}
