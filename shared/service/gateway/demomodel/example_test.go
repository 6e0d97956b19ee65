package demomodel

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var exampleTests = []struct{ name, schema, want string }{
	{"nothing", ``, `{}`},
	{"anything", `{}`, `{}`},
	{"required properties", `{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["c","f"]},` +
		`"days":{"type":"integer"}},"required":["city","unit"],"additionalProperties":false}`, `{"city":"example","unit":"c"}`},
	{"required but not described", `{"type":"object","required":["a"]}`, `{"a":"example"}`},
	{"const", `{"properties":{"kind":{"const":"circle"},"n":{"const":null}},"required":["kind","n"]}`, `{"kind":"circle","n":null}`},
	{"types", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"null"},"c":{"type":"boolean"},
		"d":{"type":"integer"},"e":{"type":"number"}},"required":["a","b","c","d","e"]}`,
		`{"a":"example","b":null,"c":true,"d":1,"e":1}`},
	{"arrays", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},"b":{"type":"array"}},
		"required":["a","b"]}`, `{"a":[1],"b":["example"]}`},
	{"optional properties with limits", `{"type":"object","properties":{"a":{"type":"string","pattern":"^a$"}}}`, `{}`},
	{"text that JSON escapes", `{"type":"object","properties":{"a\"b":{"const":"<&>\n"}},"required":["a\"b"]}`, ``},
}

func TestExamplesMatchTheirSchemas(t *testing.T) {
	for _, test := range exampleTests {
		t.Run(test.name, func(t *testing.T) {
			got, err := exampleOf(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			if test.want != "" && got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if test.schema != "" {
				validate(t, test.schema, got)
			}
		})
	}
}

func validate(t *testing.T, schema, value string) {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		t.Fatalf("%v: %s", err, value)
	}
	if err := compiled.Validate(instance); err != nil {
		t.Errorf("%s does not match: %v", value, err)
	}
}

// The schema refers to each of its 30 levels twice, so expanding all of them would take hours.
func TestRepeatedNamesAreExpandedOnce(t *testing.T) {
	const levels = 30
	got, err := exampleOf(json.RawMessage(strings.Repeat(`{"required":["a","a"],"properties":{"a":`, levels) + "{}" +
		strings.Repeat("}}", levels)))
	if want := strings.Repeat(`{"a":`, levels) + "{}" + strings.Repeat("}", levels); err != nil || got != want {
		t.Errorf("the example is %s, %v, want %s", got, err, want)
	}
}

func TestUnsupportedSchemasAreRejected(t *testing.T) {
	for name, schema := range map[string]string{
		"no schema":                     `"text"`,
		"a schema that permits nothing": `{"type":"object","properties":{"a":false},"required":["a"]}`,
		"an unknown type":               `{"type":"thing"}`,
		"a reference":                   `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`,
		"alternatives":                  `{"anyOf":[{"type":"integer"},{"type":"string"}]}`,
		"not":                           `{"type":"string","not":{"const":"a"}}`,
		"limits":                        `{"type":"integer","minimum":3}`,
		"a number of items":             `{"type":"array","items":{"type":"integer"},"minItems":2}`,
		"a pattern":                     `{"type":"string","pattern":"^a$"}`,
		"types that exclude each other": `{"allOf":[{"type":"string"},{"type":"integer"}]}`,
		"a keyword of the wrong type":   `{"type":"object","required":"a"}`,
		"deep nesting":                  strings.Repeat(`{"type":"array","items":`, 50) + "{}" + strings.Repeat("}", 50),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := exampleOf(json.RawMessage(schema)); err == nil {
				t.Errorf("got %.200s, want an error", got)
			}
		})
	}
}

func FuzzExample(f *testing.F) {
	for _, test := range exampleTests {
		f.Add(test.schema)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		if !json.Valid([]byte(schema)) {
			return
		}
		if got, err := exampleOf(json.RawMessage(schema)); err == nil && !json.Valid([]byte(got)) {
			t.Errorf("%s gives %s", schema, got)
		}
	})
}
