package catalog

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "write the built-in catalog anew")

// The built-in catalog is catalog.yaml in a form that is faster to read.
func TestBuiltinIsTheCatalog(t *testing.T) {
	source, err := os.ReadFile("catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file catalogFile
	if err := yaml.UnmarshalWithOptions(source, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(file, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile("catalog.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return // it is compiled into the next run
	}
	if !bytes.Equal(text, builtin) {
		t.Fatal("catalog.json is not catalog.yaml any more: run go generate ./shared/domain/catalog")
	}
	want, err := Parse(source, "acme")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Default("acme")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("the built-in catalog differs from catalog.yaml (-yaml +built-in):\n%s", diff)
	}
}
