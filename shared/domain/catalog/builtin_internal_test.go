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
	text, err := json.Marshal(said(reflect.ValueOf(file)))
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

// said returns a value for JSON without the fields of structs that are not set: they are most
// of the file, and take time to read at each start.
func said(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		fields := map[string]any{}
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				fields[v.Type().Field(i).Name] = said(v.Field(i))
			}
		}
		return fields
	case reflect.Slice:
		var list []any
		for i := range v.Len() {
			list = append(list, said(v.Index(i)))
		}
		return list
	case reflect.Map:
		entries := map[string]any{}
		for _, key := range v.MapKeys() {
			entries[key.String()] = said(v.MapIndex(key))
		}
		return entries
	case reflect.Pointer:
		return said(v.Elem())
	}
	return v.Interface()
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]uint64{
		"12GiB": 12 << 30, "1.5 TB": 1_500_000_000_000, "800 mb": 800_000_000, "24G": 24_000_000_000, "512": 512, "7 B": 7,
		"64KiB": 64 << 10,
	} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1GiB", "12 apples", "1GBiB", "NaN", "Inf GB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
