package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Names and their canonical ids (docs/contract/media.md#model-resolution), without
// a credential. The responses are in testdata/golden, by case.
func TestResolveModels(t *testing.T) {
	w := newWorld(t, setup{})
	var outcomes []outcome
	for _, c := range []struct{ says, body string }{
		{"an alias", `{"model": "gen-latest"}`},
		{"a deprecated alias", `{"model": "gen-2.1-vton-2"}`},
		{"a canonical id resolves to itself", `{"model": "gen-2.5"}`},
		{"several", `{"models": ["gen-image-latest", "gen-clip", "gen-image-latest"]}`},
		{"none of several", `{"models": []}`},
		{"both", `{"model": "gen-restyle-latest", "models": ["gen-vton-latest"]}`},
		{"null is absent", `{"model": null, "models": ["gen-2.1"]}`},
		{"an unknown name", `{"model": "gen-9"}`},
		{"an unknown name among others", `{"model": "gen-2.5", "models": ["gen-2.1", "gen-9"]}`},
		{"a name in other letters", `{"model": "GEN-2.5"}`},
		{"an empty name", `{"model": ""}`},
		{"neither", `{}`},
		{"both null", `{"model": null, "models": null}`},
		{"no body", ""},
		{"null", "null"},
		{"model is a string", `{"model": ["gen-2.5"]}`},
		{"models is a list", `{"models": "gen-2.5"}`},
		{"all problems at once", `{"models": ["gen-2.5", 1], "model": 2}`},
		{"no JSON", `model=gen-2.5`},
	} {
		a := w.request(http.MethodPost, "/v1/models/resolve", "", strings.NewReader(c.body), "Content-Type: application/json")
		if a.status == http.StatusUnprocessableEntity {
			outcomes = append(outcomes, w.refusal(c.says, a))
			continue
		}
		outcomes = append(outcomes, outcome{c.says, a.status, []any{json.RawMessage(a.body)}})
	}
	golden(t, "resolve", outcomes)
	// A list with a hundred thousand problems is reported as one problem.
	long := `{"models": [` + strings.Repeat("1,", 100_000) + `1]}`
	a := w.request(http.MethodPost, "/v1/models/resolve", "", strings.NewReader(long), "Content-Type: application/json")
	if a.status != 422 || len(a.body) > 2*len(long) ||
		!strings.Contains(string(a.body), "The list has 100001 items, more than 1000.") {
		t.Errorf("a long list of numbers: %d with %d bytes", a.status, len(a.body))
	}
	for _, key := range []string{studio, "garbage"} {
		if a := w.request(http.MethodPost, "/v1/models/resolve", key,
			strings.NewReader(`{"model": "gen-2.5"}`)); a.status != 200 {
			t.Errorf("with the key %q: %d %s", key, a.status, a.body)
		}
	}
}
