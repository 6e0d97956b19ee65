package demomodel

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// exampleTests are schemas with their examples; an empty example is only
// validated.
var exampleTests = []struct{ name, schema, want string }{
	{"nothing", ``, `{}`},
	{"anything", `{}`, `{}`},
	{"required properties", `{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["c","f"]},` +
		`"days":{"type":"integer"}},"required":["city","unit"],"additionalProperties":false}`, `{"city":"example","unit":"c"}`},
	{"required but not described", `{"type":"object","required":["a"]}`, `{"a":"example"}`},
	{"const", `{"properties":{"kind":{"const":"circle"},"n":{"const":null}},"required":["kind","n"]}`, `{"kind":"circle","n":null}`},
	{"types", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"null"},"c":{"type":"boolean"}},
		"required":["a","b","c"]}`, `{"a":"example","b":null,"c":true}`},
	{"numbers", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer","minimum":7},
		"c":{"type":"integer","maximum":-7},"d":{"type":"integer","exclusiveMinimum":7},"e":{"type":"number","minimum":0.5,"maximum":0.6},
		"f":{"type":"integer","minimum":2.5,"exclusiveMaximum":4}},"required":["a","b","c","d","e","f"]}`,
		`{"a":1,"b":7,"c":-7,"d":8,"e":0.5,"f":3}`},
	{"a long string", `{"type":"string","minLength":9}`, `"examplexx"`},
	{"arrays", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"minItems":3},"b":{"type":"array"}},
		"required":["a","b"]}`, `{"a":[1,1,1],"b":[]}`},
	{"alternatives", `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"}]},
		"b":{"oneOf":[{"type":"object","required":["x"]},{"type":"null"}]},"c":{"anyOf":[{"type":"string","pattern":"a"},{"type":"boolean"}]}},
		"required":["a","b","c"]}`, `{"a":1,"b":{"x":"example"},"c":true}`},
	{"references", `{"$defs":{"point":{"type":"object","properties":{"x":{"$ref":"#/$defs/size"}},"required":["x"]},"size":{"type":"integer","minimum":3}},
		"properties":{"from":{"$ref":"#/$defs/point"},"to":{"$ref":"#/$defs/point"}},"required":["from","to"]}`, `{"from":{"x":3},"to":{"x":3}}`},
	{"a list of itself", `{"$defs":{"node":{"type":"object","properties":{"value":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["value","next"]}},"$ref":"#/$defs/node"}`, ``},
	{"a tree of itself", `{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}},"name":{"type":"string"}},"required":["name","children"]}`, ``},
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

// validate validates a value against a schema, formats included.
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

func TestSchemasWithoutAnExample(t *testing.T) {
	for name, schema := range map[string]string{
		"no schema":                     `"text"`,
		"nothing is allowed":            `{"type":"object","properties":{"a":false},"required":["a"]}`,
		"an unknown type":               `{"type":"thing"}`,
		"a reference to nowhere":        `{"$ref":"#/$defs/none"}`,
		"a reference elsewhere":         `{"$ref":"https://example.com/schema.json"}`,
		"a reference to itself":         `{"$ref":"#"}`,
		"it requires itself":            `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		"a wide tree":                   `{"type":"array","minItems":9,"items":{"$ref":"#"}}`,
		"not":                           `{"type":"string","not":{"const":"a"}}`,
		"bounds that exclude all":       `{"type":"integer","minimum":3,"maximum":2}`,
		"too many items":                `{"type":"array","items":{"type":"integer"},"minItems":1000000000}`,
		"too long":                      `{"type":"string","minLength":1000000000}`,
		"a pattern":                     `{"type":"string","pattern":"^a$"}`,
		"alternatives beside others":    `{"type":"object","required":["a"],"anyOf":[{"required":["b"]},{"required":["c"]}]}`,
		"types that exclude each other": `{"allOf":[{"type":"string"},{"type":"integer"}]}`,
		"wrong keyword":                 `{"type":"object","required":"a"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := exampleOf(json.RawMessage(schema)); err == nil {
				t.Errorf("got %.200s, want an error", got)
			}
		})
	}
}

// Any schema soon results in an example that is JSON, or in an error.
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
