package engineserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver/livewire"
	"cutroom/shared/testkit/alloctest"
	"cutroom/shared/testkit/await"
)

func TestResponsesWithSmallElementsUseLittleMemory(t *testing.T) {
	const most = 1<<20 - 100
	many := func(head, piece, tail string, most int) string {
		return head + strings.Repeat(piece, most/len(piece)) + tail
	}
	estimate := func(url string) error {
		_, err := newEngine(t, url, await.Max).Estimates(t.Context(), questions())
		return err
	}
	run := func(url string) error {
		_, err := newEngine(t, url, await.Max).Run(t.Context(), newSpec(t), func(engine.Progress) {})
		return err
	}
	for name, c := range map[string]struct {
		answer string
		call   func(url string) error
	}{
		"estimates":       {many(`{"estimates":[`, "{},", "null]}\n", most), estimate},
		"seconds":         {many(`{"estimates":[{"seconds":[`, "0,", "0]}]}\n", most), estimate},
		"most estimates":  {many(`{"estimates":[`, "{},", strings.Repeat(" ", most-20_000)+"null]}\n", 14_000), estimate},
		"understood":      {many(`{"error":{},"result":{"understood":[`, `"",`, "null]}}\n", 200<<10), run},
		"most understood": {many(`{"error":{},"result":{"understood":[`, `"",`, strings.Repeat(" ", 150<<10)+"null]}}\n", 29_000), run},
		"stages":          {many(`{"error":{},"result":{"stages":{"a":0`, `,"":0`, "}}}\n", 200<<10), run},
	} {
		t.Run(name, func(t *testing.T) {
			url := scripted(t, http.StatusOK, c.answer, closes)
			_ = c.call(url) // opens the connection before the measurement
			alloctest.Check(t, len(c.answer), func() {
				if err := c.call(url); err == nil {
					t.Error("the response was accepted")
				}
			})
		})
	}
}

func TestLiveCatalogsUseLittleMemory(t *testing.T) {
	catalogue := `{"version":1,"models":{"":{}` + strings.Repeat(`,"":{}`, 170<<10) + `}}`
	url := serveLive(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == livewire.Path {
			_, _ = io.WriteString(w, catalogue)
		}
	}))
	l := newLive(t, await.Max, url)
	alloctest.Check(t, len(catalogue), func() {
		if _, err := l.Open(t.Context(), liveModel); err == nil {
			t.Error("a session was opened")
		}
	})
}
