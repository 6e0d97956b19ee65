package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/jpeg"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// No credential is needed (docs/contract/media.md#model-resolution).
func TestModelNamesAreResolved(t *testing.T) {
	w := newWorld(t, setup{})
	var outcomes []outcome
	for _, c := range []struct{ says, body string }{
		{"an alias", `{"model": "gen-latest"}`},
		{"a deprecated alias", `{"model": "gen-2.1-vton-2"}`},
		{"a canonical id resolves to itself", `{"model": "gen-2.5"}`},
		{"several", `{"models": ["gen-image-latest", "gen-clip", "gen-image-latest"]}`},
		{"an empty list", `{"models": []}`},
		{"both", `{"model": "gen-restyle-latest", "models": ["gen-vton-latest"]}`},
		{"null is absent", `{"model": null, "models": ["gen-2.1"]}`},
		{"an unknown name", `{"model": "gen-9"}`},
		{"an unknown name among others", `{"model": "gen-2.5", "models": ["gen-2.1", "gen-9"]}`},
		{"a name in upper case", `{"model": "GEN-2.5"}`},
		{"an empty name", `{"model": ""}`},
		{"neither", `{}`},
		{"both null", `{"model": null, "models": null}`},
		{"no body", ""},
		{"null", "null"},
		{"model is a string", `{"model": ["gen-2.5"]}`},
		{"models is a list", `{"models": "gen-2.5"}`},
		{"all problems", `{"models": ["gen-2.5", 1], "model": 2}`},
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
	for items, c := range map[int]struct{ path, message string }{
		5_001:  {"/v1/models/resolve", "The list has 5001 items; the maximum is 1000."},
		20_001: {"/v1/client/tokens", "The body has more than 10000 values."},
	} {
		long := `{"models": [` + strings.Repeat("1,", items-1) + `1]}`
		a := w.request(http.MethodPost, c.path, studio, strings.NewReader(long), "Content-Type: application/json")
		if a.status != 422 || len(a.body) > 2*len(long) || !strings.Contains(a.body, c.message) {
			t.Errorf("a list of %d numbers: %d with %d bytes, %.200s", items, a.status, len(a.body), a.body)
		}
	}
	for _, key := range []string{studio, "garbage"} {
		if a := w.request(http.MethodPost, "/v1/models/resolve", key,
			strings.NewReader(`{"model": "gen-2.5"}`)); a.status != 200 {
			t.Errorf("with the key %q: %d %s", key, a.status, a.body)
		}
	}
}

func TestUnderstandExplainsPrompt(t *testing.T) {
	w := newWorld(t, setup{})
	type body struct {
		Engine              string
		Understood, Ignored []string
		Notice              string
	}
	for _, c := range []struct {
		sent   string
		status int
		want   body
	}{
		{`{"model":"gen-latest","prompt":"a snowy night, and add a hat"}`, 200,
			body{"preview", []string{"winter", "night"}, []string{"add a hat"}, "“add a hat” will change nothing"}},
		{`{"model":"gen-2.5","prompt":"acuarela"}`, 200, body{"preview", []string{"watercolor"}, []string{}, ""}},
		{`{"model":"gen-2.5"}`, 200, body{"preview", []string{}, []string{}, "Nothing will be changed"}},
		{`{"model":"gen-2.5","prompt":null,"reference_image":true}`, 200,
			body{"preview", []string{"colors of the reference image"}, []string{}, "The preview engine takes only the colors"}},
		{`{"model":"gen-pro-t2v","prompt":"the sea"}`, 200, body{"preview", []string{"bay"}, []string{}, ""}},
		{`{"model":"gen-9","prompt":"x"}`, 404, body{}},
		{`{"prompt":"x"}`, 422, body{}},
		{`{"model":"gen-2.5","prompt":7}`, 422, body{}},
		{`{"model":"gen-2.5","prompt":"` + strings.Repeat("日", 1001) + `"}`, 422, body{}},
		{`{"model":"gen-2.5","seconds":["` + strings.Repeat("a", 17<<10) + `"]}`, 413, body{}},
		{``, 422, body{}},
		{`{`, 422, body{}},
	} {
		a := w.request(http.MethodPost, "/v1/understand", "", strings.NewReader(c.sent), "Content-Type: application/json")
		if a.status != c.status {
			t.Errorf("%.60s: %d %s, want %d", c.sent, a.status, a.body, c.status)
			continue
		}
		var got body
		if err := json.Unmarshal([]byte(a.body), &got); err != nil && c.status == 200 {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got.Notice, c.want.Notice) {
			t.Errorf("%.60s: the notice is %q", c.sent, got.Notice)
		}
		if got.Notice = c.want.Notice; c.status == 200 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%.60s: %+v, want %+v", c.sent, got, c.want)
		}
	}
}

// The planned size and length follow the edits that the prompt asks for.
func TestPlanFollowsPrompt(t *testing.T) {
	w := newWorld(t, setup{})
	for prompt, want := range map[string]string{
		"":                                   `"planned":{"width":1280,"height":720,"fps":20,"seconds":4}`,
		"rotate 90 degrees and slow motion":  `"planned":{"width":720,"height":1280,"fps":20,"seconds":8}`,
		"crop to square, first 1.5 seconds":  `"planned":{"width":720,"height":720,"fps":20,"seconds":1.5}`,
		"don't rotate it, make it brighter.": `"planned":{"width":1280,"height":720,"fps":20,"seconds":4}`,
	} {
		a := w.request(http.MethodPost, "/v1/understand", "", strings.NewReader(
			`{"model":"gen-2.5","prompt":"`+prompt+`","resolution":"720p","width":1920,"height":1080,"seconds":4}`,
		), "Content-Type: application/json")
		if a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%q: %d %s, want %s", prompt, a.status, a.body, want)
		}
	}
	id := w.accepted(w.post("gen-2.5", studio, part{"data", "beach.mp4", clip(t)}, text("prompt", "crop to 9:16")))
	if planned := w.record(id).Request.Planned; planned == nil || planned.Width >= planned.Height {
		t.Errorf("the job's plan is %+v", planned)
	}
}

func TestLooksHavePictures(t *testing.T) {
	w := newWorld(t, setup{})
	var list struct {
		Engine, Original string
		Looks            []struct {
			Name, Picture string
			Words, Names  []string
		}
		Changes []struct{ Name string }
		Scenes  []string
	}
	a := w.get("/v1/looks", "")
	if got := a.header.Get("Cache-Control"); got != "public, max-age=3600" {
		t.Errorf("got Cache-Control %q", got)
	}
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.status != 200 || list.Engine != "preview" {
		t.Fatalf("%d %.200s", a.status, a.body)
	}
	if len(list.Looks) < 28 || len(list.Changes) < 20 || len(list.Scenes) != 7 {
		t.Errorf("%d looks, %d changes, %d scenes", len(list.Looks), len(list.Changes), len(list.Scenes))
	}
	if len(a.body) > 600_000 {
		t.Errorf("the list has %d bytes", len(a.body))
	}
	seen := map[string]string{list.Original: "the original"}
	for _, look := range list.Looks {
		if other, taken := seen[look.Picture]; taken {
			t.Errorf("%s has the picture of %s", look.Name, other)
		}
		seen[look.Picture] = look.Name
		encoded, found := strings.CutPrefix(look.Picture, "data:image/jpeg;base64,")
		picture, err := base64.StdEncoding.DecodeString(encoded)
		if !found || err != nil || len(look.Words) == 0 {
			t.Errorf("%s: %.60s, %v", look.Name, look.Picture, err)
		}
		if size, err := jpeg.DecodeConfig(bytes.NewReader(picture)); err != nil || size.Width != 192 || size.Height != 108 {
			t.Errorf("%s: the picture is %dx%d, %v", look.Name, size.Width, size.Height, err)
		}
	}
}

func TestEngineListsIgnoredFields(t *testing.T) {
	w := newWorld(t, setup{})
	var list struct {
		Engine string
		Models []struct {
			ID                string
			Ignores           map[string]struct{ Why, Unless string }
			SameAs            []string `json:"same_as"`
			Unsupported, Kind string
		}
	}
	a := w.get("/v1/engine", "")
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.status != 200 || list.Engine != "preview" {
		t.Fatalf("%d %.200s", a.status, a.body)
	}
	same := map[string][]string{"gen-vton-3.5": {"gen-vton-3.6"}, "gen-vton-3.6": {"gen-vton-3.5"},
		"gen-clip": {"gen-restyle-2"}, "gen-restyle-2": {"gen-clip"}, "gen-2.5": {"gen-2.6"}, "gen-2.6": {"gen-2.5"}}
	for _, m := range list.Models {
		if m.Ignores["enhance_prompt"].Why == "" || (m.Ignores["self_anchor"].Unless == "reference_image") != (m.ID == "gen-2.5" || m.ID == "gen-2.6") {
			t.Errorf("%s ignores %v", m.ID, m.Ignores)
		}
		if (m.Kind == "try-on") != strings.Contains(m.Unsupported, "needs a GPU engine") {
			t.Errorf("%s is unsupported: %q", m.ID, m.Unsupported)
		}
		if strings.Join(m.SameAs, " ") != strings.Join(same[m.ID], " ") {
			t.Errorf("%s is the same as %v, want %v", m.ID, m.SameAs, same[m.ID])
		}
	}
}
