package catalog

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "regenerate the built-in catalog")

func TestBuiltinMatchesCatalogFile(t *testing.T) {
	source, err := os.ReadFile("catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file catalogFile
	if err := yaml.UnmarshalWithOptions(source, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	text, err := format.Source([]byte("// Code generated from catalog.yaml by go generate; DO NOT EDIT.\n\n" +
		"package catalog\n\n// builtin returns catalog.yaml with the models of a family.\n" +
		"func builtin(family string) catalogFile {\nreturn " + inGo(reflect.ValueOf(file)) + "\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	const name = "builtin_catalog.go"
	if *update {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return // the next run compiles the new file in
	}
	if compiled, err := os.ReadFile(name); err != nil || !bytes.Equal(text, compiled) {
		t.Fatalf("%s differs from catalog.yaml: run go generate ./shared/domain/catalog (%v)", name, err)
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

// A JSON catalog must equal its YAML source. The source uses every feature.
func TestJSONMatchesYAML(t *testing.T) {
	source, err := os.ReadFile("catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	source = bytes.Replace(source, []byte("kind: image\n"), []byte(`kind: image
    price: {per_edit: "0.02"}
    comfyui:
      workflow: edit.json
      prompt: 6.text
      seed: [3.seed, "57:3.noise_seed"]
      data: 1.image
      reference: 2.image
      without_reference: [2, 20]
      result: 9
      options: {resolution: 7.size}
`), 1)
	source = append([]byte("currency: EUR\n"), source...)
	want, err := Parse(source, "acme")
	if err != nil {
		t.Fatal(err)
	}
	text, err := JSON(source)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseJSON(text, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("the catalogs differ (-yaml +json):\n%s", diff)
	}
	for _, c := range []struct{ source, family string }{{"{", "acme"}, {`{"Modles": []}`, "acme"}, {"{}", "acme"}, {string(text), "a/b"}} {
		if _, err := ParseJSON([]byte(c.source), c.family); err == nil {
			t.Errorf("%.20q with the family %s was accepted", c.source, c.family)
		}
	}
	if _, err := JSON([]byte("modles: []\n")); err == nil {
		t.Error("an invalid field was accepted")
	}
}

func inGo(v reflect.Value) string {
	var text strings.Builder
	switch v.Kind() {
	case reflect.String:
		constant := strconv.Quote(v.String())
		constant = strings.ReplaceAll(constant, familyPlace, `"+family+"`)
		return strings.TrimPrefix(strings.TrimSuffix(constant, `+""`), `""+`)
	case reflect.Pointer:
		if v.Elem().Kind() == reflect.Struct {
			return "&" + inGo(v.Elem())
		}
		return fmt.Sprintf("new(%s(%v))", v.Elem().Type(), v.Elem())
	case reflect.Interface:
		if v.Elem().Kind() == reflect.Uint64 {
			return fmt.Sprintf("uint64(%v)", v.Elem())
		}
		return inGo(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				fmt.Fprintf(&text, "%s: %s,\n", v.Type().Field(i).Name, inGo(v.Field(i)))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			for i := range v.Len() {
				fmt.Fprintf(&text, "%s, ", inGo(v.Index(i)))
			}
			return typeName(v.Type()) + "{" + strings.TrimSuffix(text.String(), ", ") + "}"
		}
		for i := range v.Len() {
			fmt.Fprintf(&text, "%s,\n", strings.TrimPrefix(inGo(v.Index(i)), typeName(v.Type().Elem())))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			value := strings.TrimPrefix(inGo(v.MapIndex(key)), typeName(v.Type().Elem()))
			fmt.Fprintf(&text, "%s: %s,\n", inGo(key), value)
		}
	default:
		return fmt.Sprint(v)
	}
	return typeName(v.Type()) + "{\n" + text.String() + "}"
}

func typeName(t reflect.Type) string { return strings.ReplaceAll(t.String(), "catalog.", "") }
