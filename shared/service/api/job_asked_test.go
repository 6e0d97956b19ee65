package api_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/domain/credential"
)

type asked struct {
	Prompt  string
	Options map[string]any
	Inputs  map[string]struct {
		Name, MIME string
		Size       int64 `json:"size_bytes"`
	}
}

// A job's record contains the original names of its inputs without folders, and the names of referenced files.
func TestJobShowsInputNames(t *testing.T) {
	w := newWorld(t, setup{})
	video, image := clip(t), picture(t)
	stored := w.stored(w.send(studio, part{"file", `C:\\photos\\Shirt, blue.png`, image}))
	names := func(key, id string) map[string]string {
		t.Helper()
		var shown asked
		if a := w.get("/v1/jobs/"+id, key); a.status != 200 || json.Unmarshal([]byte(a.body), &shown) != nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		names := map[string]string{}
		for field, input := range shown.Inputs {
			if names[field] = input.Name; input.MIME == "" || input.Size == 0 {
				t.Errorf("%s: %+v", field, input)
			}
		}
		return names
	}
	for _, c := range []struct {
		sent []part
		want map[string]string
	}{
		{[]part{{"data", "../My clip é.mov", video}}, map[string]string{"data": "My clip é.mov"}},
		{[]part{{"data", "", video}}, map[string]string{"data": ""}},
		{
			[]part{{"data", "a.mp4", video}, {"reference_image.0", "ref", stored.ID}},
			map[string]string{"data": "a.mp4", "reference_image": "Shirt, blue.png"},
		},
	} {
		id := w.accepted(w.post("gen-2.5", studio, c.sent...))
		for _, key := range []string{studio, w.mint(studio, credential.Scope{Models: []string{"gen-latest"}})} {
			if got := names(key, id); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		}
	}
}

// Lists shorten long texts, but a job's own record does not.
func TestListShortensTexts(t *testing.T) {
	w := newWorld(t, setup{})
	long := strings.Repeat("é", 4000)
	id := w.accepted(w.post("gen-pro-t2v", studio, text("prompt", long)))
	fits := w.accepted(w.post("gen-pro-t2v", studio, text("prompt", long[:1000])))
	var page struct {
		Jobs []struct {
			ID string `json:"job_id"`
			asked
		}
	}
	if err := json.Unmarshal([]byte(w.get("/v1/jobs", studio).body), &page); err != nil || len(page.Jobs) != 2 {
		t.Fatal(page, err)
	}
	for _, j := range page.Jobs {
		want := map[string]string{id: long[:998] + "…", fits: long[:1000]}[j.ID]
		if j.Prompt != want || j.Options["resolution"] != "720p" {
			t.Errorf("%s is shown with %q and %v", j.ID, j.Prompt, j.Options)
		}
	}
	var whole asked
	if err := json.Unmarshal([]byte(w.get("/v1/jobs/"+id, studio).body), &whole); err != nil || whole.Prompt != long {
		t.Errorf("the record has %q, %v", whole.Prompt, err)
	}
}

// Searches can be combined with other filters and split into pages.
func TestJobSearchFindsWords(t *testing.T) {
	w := newWorld(t, setup{})
	video := clip(t)
	beach := w.accepted(w.post("gen-2.5", studio, part{"data", "Beach.mov", video}, text("prompt", "a Watercolor")))
	forest := w.accepted(w.post("gen-2.1", studio, part{"data", "forest.mp4", video}, text("prompt", "watercolor, wet")))
	t2v := w.accepted(w.post("gen-pro-t2v", studio, text("prompt", "a beach & a storm")))
	w.accepted(w.post("gen-pro-t2v", rival, text("prompt", "watercolor beach")))
	for query, want := range map[string][]string{
		"q=":                                 {beach, forest, t2v},
		"q=++beach+++WATER+":                 {beach},
		"q=%26":                              {t2v},
		"q=" + strings.Repeat("%C3%A9", 200): nil,
		"q=water&model=gen-2.1":              {forest},
		"q=a&status=processing":              nil,
		"q=beach&q=watercol":                 {beach, forest}, // the last q wins; it matches no id, as ids have no L and no O
	} {
		for _, limit := range []string{"&limit=1", ""} {
			got := w.jobIDs(studio, query+limit)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s%s: %v, want %v", query, limit, got, want)
			}
		}
	}
	a := w.get("/v1/jobs?q="+strings.Repeat("x", 201), studio)
	if a.status != 422 || !strings.Contains(a.body, `["query","q"],"msg":"String should have at most 200 characters"`) {
		t.Errorf("a search that is too long: %d %s", a.status, a.body)
	}
}
