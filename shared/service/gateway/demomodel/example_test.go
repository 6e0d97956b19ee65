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
	{"properties in their order", `{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string",` +
		`"enum":["c","f"]},"days":{"type":"integer"}},"required":["city"],"additionalProperties":false}`,
		`{"city":"example","unit":"c","days":1}`},
	{"required but not described", `{"type":"object","required":["a"]}`, `{"a":"example"}`},
	{"additional properties", `{"type":"object","minProperties":2,"additionalProperties":{"type":"boolean"}}`, ``},
	{"const", `{"properties":{"kind":{"const":"circle"},"n":{"const":null}},"required":["kind","n"]}`, `{"kind":"circle","n":null}`},
	{"types", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"null"},"c":{"type":["null"]},` +
		`"d":{"type":"boolean"}}}`,
		`{"a":"example","b":null,"c":null,"d":true}`},
	{"numbers", `{"type":"array","prefixItems":[
		{"type":"integer"},{"type":"number"},{"type":"integer","minimum":7},{"type":"integer","maximum":-7},{"type":"integer","exclusiveMinimum":7},
		{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.01},{"type":"number","minimum":0,"maximum":1},{"type":"number","multipleOf":0.25,"minimum":3},
		{"type":"integer","multipleOf":5,"minimum":11},{"type":"integer","minimum":4294967295,"maximum":4294967295},{"type":"number","maximum":-1e9}]}`, ``},
	{"strings", `{"type":"array","prefixItems":[
		{"type":"string","minLength":20},{"type":"string","maxLength":2},{"type":"string","maxLength":0},{"type":"string","minLength":3,"maxLength":3},
		{"type":"string","format":"date-time"},{"type":"string","format":"date"},{"type":"string","format":"email"},{"type":"string","format":"uuid"},
		{"type":"string","format":"uri"},{"type":"string","format":"ipv4"},{"type":"string","format":"ipv6"},{"type":"string","format":"time"},
		{"type":"string","format":"duration"},{"type":"string","format":"hostname"}]}`, ``},
	{"patterns", `{"type":"array","prefixItems":[
		{"type":"string","pattern":"^[A-Z]{3}-[0-9]{4}$"},{"type":"string","pattern":"^(red|green)$"},{"type":"string","pattern":"b","minLength":6},
		{"type":"string","pattern":"^[a-z]+$","minLength":8,"maxLength":8},{"type":"string","pattern":"^\\+?\\d{1,3}( \\d+)*$"},{"type":"string","pattern":"^\\S+@\\S+\\.com$"}]}`, ``},
	{"arrays", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"minItems":3},"b":{"type":"array","items":{"type":"string"},"maxItems":0},
		"c":{"type":"array","items":{"type":"string"},"uniqueItems":true,"minItems":2},"d":{"type":"array","items":{"enum":["x","y"]},"uniqueItems":true,"minItems":2}}}`,
		`{"a":[1,2,3],"b":[],"c":["example","example 2"],"d":["x","y"]}`},
	{"alternatives", `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"}]},"b":{"oneOf":[{"type":"object","properties":{"kind":{"const":"x"}},"required":["kind"]},{"type":"null"}]},
		"c":{"anyOf":[{"type":"string","pattern":"(?!a)"},{"type":"boolean"}]}}}`, `{"a":1,"b":{"kind":"x"},"c":true}`},
	{"alternatives beside other keywords", `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"anyOf":[{"required":["b"]},{"required":["c"]}]}`, `{"a":1,"b":"example"}`},
	{"all of them", `{"allOf":[{"type":"object","properties":{"a":{"type":"integer","minimum":5}},"required":["a"]},
		{"properties":{"b":{"type":"string"},"a":{"type":"number","maximum":5}},"required":["b"]}]}`, `{"a":5,"b":"example"}`},
	{"references", `{"$defs":{"point":{"type":"object","properties":{"x":{"$ref":"#/$defs/size"}},"required":["x"]},"size":{"type":"integer","minimum":3}},
		"type":"object","properties":{"from":{"$ref":"#/$defs/point"},"to":{"$ref":"#/$defs/point","description":"where it ends"}}}`, `{"from":{"x":3},"to":{"x":3}}`},
	{"a list of itself", `{"$defs":{"node":{"type":"object","properties":{"value":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["value","next"]}},"$ref":"#/$defs/node"}`, ``},
	{"a tree of itself", `{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}},"name":{"type":"string"}},"required":["name","children"]}`, ``},
	{"text that JSON escapes", `{"type":"object","properties":{"a\"b":{"const":"<&>\n"}}}`, ``},
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
	// The patterns are of another dialect than Go's.
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		return anyPattern(pattern), nil
	})
	if !strings.Contains(schema, "(?!") {
		compiler = jsonschema.NewCompiler()
		compiler.AssertFormat()
	}
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

// anyPattern is a pattern that Go does not support; it matches nothing.
type anyPattern string

func (p anyPattern) String() string          { return string(p) }
func (p anyPattern) MatchString(string) bool { return false }

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
		"too many properties":           `{"type":"object","minProperties":1000000000}`,
		"too long":                      `{"type":"string","minLength":1000000000}`,
		"a pattern without a text":      `{"type":"string","pattern":"^a$","minLength":2}`,
		"a pattern that grows":          `{"type":"string","pattern":"^((\\b*)*)*$","minLength":9999}`,
		"a property twice":              `{"type":"object","properties":{"a":{"allOf":[{"const":1},{"const":2}]}}}`,
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
