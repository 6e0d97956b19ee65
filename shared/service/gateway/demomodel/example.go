package demomodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// fullDepth is the depth up to which optional properties and items are
	// filled in; below it, only what a schema requires is.
	fullDepth = 4
	// maxDepth and maxValues bound an example, because a schema may require
	// itself.
	maxDepth  = 64
	maxValues = 10_000
)

// schema is a JSON Schema's keywords.
type schema map[string]json.RawMessage

// unsupported are keywords that restrict values in ways that examples do not
// take into account.
var unsupported = []string{
	"not", "if", "contains", "propertyNames", "dependentSchemas", "dependentRequired", "$dynamicRef", "unevaluatedItems",
}

// exampleOf returns a value that the JSON Schema allows, as JSON with the
// properties in the schema's order. Without a schema it is an empty object.
//
// It fails if the schema is invalid, or uses what is not supported.
func exampleOf(text json.RawMessage) (string, error) {
	if len(text) == 0 || string(text) == "null" {
		return "{}", nil
	}
	e := &exampler{root: text}
	var out bytes.Buffer
	if err := e.value(&out, text, 0, 0); err != nil {
		return "", fmt.Errorf("the demonstration model makes no example of this schema: %w", err)
	}
	return out.String(), nil
}

// exampler builds one example.
type exampler struct {
	root   json.RawMessage
	values int
}

// value writes a value that the schema allows. number distinguishes the items
// of an array, from 0.
func (e *exampler) value(out *bytes.Buffer, text json.RawMessage, depth, number int) error {
	if e.values++; e.values > maxValues || depth > maxDepth {
		return errors.New("it has no end")
	}
	s, err := e.resolve(text, depth)
	if err != nil {
		return err
	}
	for _, keyword := range unsupported {
		if _, ok := s[keyword]; ok {
			return fmt.Errorf("%s is not supported", keyword)
		}
	}
	if value, ok := s["const"]; ok {
		return compact(out, value)
	}
	if text, ok := s["enum"]; ok {
		var values []json.RawMessage
		if err := json.Unmarshal(text, &values); err != nil || len(values) == 0 {
			return errors.New("enum is no list of values")
		}
		return compact(out, values[number%len(values)])
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if text, ok := s[keyword]; ok {
			delete(s, keyword)
			return e.alternative(out, s, text, depth, number)
		}
	}
	switch kind := s.kind(depth); kind {
	case "object":
		return e.object(out, s, depth)
	case "array":
		return e.array(out, s, depth)
	case "string":
		return s.string(out, number)
	case "integer", "number":
		return s.number(out, kind == "integer", number)
	case "boolean":
		fmt.Fprint(out, number%2 == 0)
	case "null":
		out.WriteString("null")
	default:
		return fmt.Errorf("type %q is unknown", kind)
	}
	return nil
}

// alternative writes a value by the first alternative that allows one.
func (e *exampler) alternative(out *bytes.Buffer, s schema, text json.RawMessage, depth, number int) error {
	var alternatives []json.RawMessage
	if err := json.Unmarshal(text, &alternatives); err != nil || len(alternatives) == 0 {
		return errors.New("anyOf or oneOf is no list of schemas")
	}
	if depth >= fullDepth {
		// Deep down, alternatives that end a recursion come first.
		slices.SortStableFunc(alternatives, func(a, b json.RawMessage) int {
			return bytes.Count(a, []byte(`"$ref"`)) - bytes.Count(b, []byte(`"$ref"`))
		})
	}
	var failed error
	for _, each := range alternatives {
		chosen, err := e.resolve(each, depth)
		if err == nil {
			chosen, err = merge(s, chosen)
		}
		var text []byte
		if err == nil {
			text, err = json.Marshal(chosen)
		}
		if err == nil {
			length := out.Len()
			if err = e.value(out, text, depth+1, number); err == nil {
				return nil
			}
			out.Truncate(length)
		}
		failed = errors.Join(failed, err)
		if e.values > maxValues {
			break
		}
	}
	return failed
}

// kind returns the type of the value to write.
func (s schema) kind(depth int) string {
	var kind string
	if json.Unmarshal(s["type"], &kind) == nil {
		return kind
	}
	var kinds []string
	if json.Unmarshal(s["type"], &kinds) == nil && len(kinds) > 0 {
		if depth >= fullDepth && slices.Contains(kinds, "null") {
			return "null"
		}
		if i := slices.IndexFunc(kinds, func(kind string) bool { return kind != "null" }); i >= 0 {
			return kinds[i]
		}
		return "null"
	}
	for _, sign := range []struct{ kind, keywords string }{
		{"array", "items prefixItems minItems maxItems uniqueItems"},
		{"string", "pattern minLength maxLength format"},
		{"number", "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"},
	} {
		for keyword := range strings.FieldsSeq(sign.keywords) {
			if _, ok := s[keyword]; ok {
				return sign.kind
			}
		}
	}
	return "object"
}

func (e *exampler) object(out *bytes.Buffer, s schema, depth int) error {
	var properties map[string]json.RawMessage
	var required []string
	var least int
	if err := errors.Join(
		s.read("properties", &properties), s.read("required", &required), s.read("minProperties", &least),
	); err != nil {
		return err
	}
	names, err := keys(s["properties"])
	if err != nil {
		return err
	}
	if depth > fullDepth {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(required, name) })
	}
	for _, name := range required {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if least > maxValues {
		return errors.New("minProperties is too great")
	}
	for i := 1; len(names) < least; i++ {
		names = append(names, fmt.Sprint("property_", i))
	}
	out.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeString(out, name); err != nil {
			return err
		}
		out.WriteByte(':')
		property, ok := properties[name]
		if !ok {
			property = s["additionalProperties"]
			if string(property) == "false" {
				return fmt.Errorf("%q is required and not allowed", name)
			}
		}
		if err := e.value(out, property, depth+1, 0); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func (e *exampler) array(out *bytes.Buffer, s schema, depth int) error {
	var first []json.RawMessage
	least, most := 0, maxValues
	if err := errors.Join(
		s.read("prefixItems", &first), s.read("minItems", &least), s.read("maxItems", &most),
	); err != nil {
		return err
	}
	count := max(least, len(first))
	if depth < fullDepth {
		count = max(count, 1)
	}
	count = min(count, most)
	if string(s["items"]) == "false" {
		count = min(count, len(first))
	}
	if count < least {
		return errors.New("it has more items than it may have")
	}
	out.WriteByte('[')
	for i := range count {
		if i > 0 {
			out.WriteByte(',')
		}
		item := s["items"]
		if i < len(first) {
			item = first[i]
		}
		if err := e.value(out, item, depth+1, i); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

// read decodes a keyword, which may be absent.
func (s schema) read(keyword string, into any) error {
	text, ok := s[keyword]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s has the wrong form", keyword)
	}
	return nil
}

// keys returns the names of an object's members in order.
func keys(object json.RawMessage) ([]string, error) {
	if len(object) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	var names []string
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		if name, ok := name.(string); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// compact writes JSON without its spaces.
func compact(out *bytes.Buffer, text json.RawMessage) error { return json.Compact(out, text) }

func writeString(out *bytes.Buffer, text string) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the encoder's line break
	return nil
}
