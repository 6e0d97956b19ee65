package api

import (
	"testing"

	"cutroom/shared/domain/catalog"
)

// A token may name a model that was added while the service is running.
func TestTokenAcceptsAddedModel(t *testing.T) {
	known, err := catalog.Default("gen")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{Config: Config{Catalog: known, KnowsModel: func(name string) bool { return name == "later" }}}
	for body, problems := range map[string]int{`{"allowedModels": ["later"]}`: 0,
		`{"allowedModels": ["gen-2.5", "later"]}`: 1} {
		sent, err := parseJSON([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, found := s.tokenRequest(sent); len(found) != problems {
			t.Errorf("%s: %d problems, want %d: %v", body, len(found), problems, found)
		}
	}
}
