package functions_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"cutroom/functions"
)

// A function contains only the code for its routes, because other code would slow down every start.
// The linker drops unused code unless shared code refers to it.
func TestFunctionsLinkOnlyTheirRoutes(t *testing.T) {
	owners := map[string][]string{
		// A Go binary contains its function names, for stack traces.
		"cutroom/shared/service/api/openapi.Document":                 {"models"},
		"cutroom/shared/service/api.(*service).createToken":           {"models", "tokens"},
		"cutroom/shared/service/gateway/tokenizer.(*Tokenizer).Count": {"inference", "steps"},
		"cutroom/shared/service/gateway.(*Gateway).createBatch":       {"batches"},
		"github.com/goccy/go-yaml.(*Decoder).Decode":                  {"models"}, // reads the OpenAPI document
		// All route groups of the media API are in one package, which detects file types.
		"github.com/gabriel-vasile/mimetype.Detect": {
			"arrived", "batches", "c2pa", "content", "files", "images", "jobs", "models",
		},
		// Lambda's runtime passes requests on without a server, and the demo model is called without HTTP.
		"net/http.(*Server).Serve": nil,
		// Only a program that changes the sandbox's filters needs this package's tables.
		"github.com/elastic/go-seccomp-bpf": nil,
	}
	for _, f := range functions.All() {
		text, err := os.ReadFile(program(t, f.Name))
		must(t, err)
		for name, by := range owners {
			has, want := bytes.Contains(text, []byte(name)), slices.Contains(by, f.Name)
			if has != want {
				t.Errorf("%s has %s: %v, want %v", f.Name, name, has, want)
			}
		}
	}
}
