package openapi

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
)

func deployOf(t *testing.T, family string) Deploy {
	t.Helper()
	known, err := catalog.Default(family)
	if err != nil {
		t.Fatal(err)
	}
	form := func(m *catalog.Model) *catalog.Form { return m.Form }
	var generate []*catalog.Model
	for _, m := range known.Models() {
		if m.Generate != catalog.NotGenerated {
			generate = append(generate, m)
		}
	}
	return Deploy{
		Catalog: known, InferenceURL: "https://llm.example.com/a?b#c: 'd'", MaxBody: 12345,
		Routes: []ModelRoute{{"/v1/jobs/", known.Models(), form}, {"/v1/generate/", generate, form}},
	}
}

// Placeholder values may contain any character.
func TestPlaceholdersAreFilledIn(t *testing.T) {
	for _, family := range []string{"gen", "acme"} {
		t.Run(family, func(t *testing.T) {
			text, err := Document(deployOf(t, family))
			if err != nil {
				t.Fatal(err)
			}
			var document struct {
				Paths map[string]struct{ Servers []struct{ URL string } }
			}
			if err := json.Unmarshal(text, &document); err != nil {
				t.Fatal(err)
			}
			for path, item := range document.Paths {
				if strings.Contains(path, "/example") {
					t.Errorf("the document has the example %s", path)
				}
				for _, server := range item.Servers {
					if server.URL != "https://llm.example.com/a?b#c: 'd'" {
						t.Errorf("%s is at %s", path, server.URL)
					}
				}
			}
			left := regexp.MustCompile(`\$(model|alias|every_name|inference_model|inference_url|max_body)\b`).FindAll(text, -1)
			if len(left) > 0 || !strings.Contains(string(text), "larger than 12345 bytes") {
				t.Errorf("the document has %q", left)
			}
		})
	}
}

// Apply modifies neither the overlay nor the original document.
func TestApplyFollowsTheOverlay(t *testing.T) {
	const document = `{a: {b: [1, {c: x}], d: old}, "e f": {}}`
	for _, c := range []struct{ name, actions, want string }{
		{"nothing", `[]`, `{a: {b: [1, {c: x}], d: old}, "e f": {}}`},
		{"a value is replaced", `[{target: $.a, update: {d: new}}]`, `{a: {b: [1, {c: x}], d: new}, "e f": {}}`},
		{"a member is added", `[{target: "$['e f']", update: {g: {h: 1}}}]`, `{a: {b: [1, {c: x}], d: old}, "e f": {g: {h: 1}}}`},
		{"objects are merged", `[{target: $, update: {a: {e: 1}}}]`, `{a: {b: [1, {c: x}], d: old, e: 1}, "e f": {}}`},
		{"lists are joined", `[{target: $.a, update: {b: [2]}}]`, `{a: {b: [1, {c: x}, 2], d: old}, "e f": {}}`},
		{"an item is changed", `[{target: "$.a.b[1]", update: {c: y}}]`, `{a: {b: [1, {c: y}], d: old}, "e f": {}}`},
		{"an item is removed", `[{target: "$.a.b[0]", remove: true}]`, `{a: {b: [{c: x}], d: old}, "e f": {}}`},
		{"a member is removed", `[{target: "$['a']['b']", remove: true}]`, `{a: {d: old}, "e f": {}}`},
		{"in turn", `[{target: $.a.d, remove: true}, {target: $.a, update: {d: 1}}]`, `{a: {b: [1, {c: x}], d: 1}, "e f": {}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, overlay, want := read(t, document), read(t, "{actions: "+c.actions+"}"), read(t, c.want)
			got, err := apply(base, overlay)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
			if !reflect.DeepEqual(base, read(t, document)) {
				t.Errorf("the document was changed: %v", base)
			}
		})
	}
}

func TestInvalidTargetIsRejected(t *testing.T) {
	for _, target := range []string{
		"", "a", "$.z", "$.a.z", "$.a.b[2]", "$.a.b[-1]", "$.a.b[01]", "$.a[0]", "$.a.b.c", "$..c", "$.*", "$.a.b[*]", "$.a.b[?@.c]",
		"$['a", "$.", "$.a.b[99999999999999999999]", "$.a.d.e",
	} {
		for _, change := range []string{"remove: true", "update: {c: 1}"} {
			overlay := read(t, "{actions: [{target: \""+target+"\", "+change+"}]}")
			if got, err := apply(read(t, `{a: {b: [1, {c: x}], d: old}}`), overlay); err == nil {
				t.Errorf("%s of %q makes %v", change, target, got)
			}
		}
	}
}

func read(t *testing.T, text string) object {
	t.Helper()
	o, err := readObject(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
