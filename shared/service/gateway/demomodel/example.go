package demomodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// maxDepth and maxValues limit an example, because a schema may require itself.
const maxDepth, maxValues = 32, 10_000

// unsupported are keywords that restrict values and that examples do not follow.
var unsupported = []string{
	"allOf", "not", "if", "contains", "pattern", "format", "multipleOf", "maxLength", "prefixItems", "uniqueItems", "minProperties",
	"propertyNames", "dependentSchemas", "dependentRequired", "$dynamicRef",
}

// schema has the keywords that examples follow.
type schema struct {
	Ref              string                     `json:"$ref"`
	Type             any                        `json:"type"`
	Enum             []json.RawMessage          `json:"enum"`
	AnyOf            []json.RawMessage          `json:"anyOf"`
	OneOf            []json.RawMessage          `json:"oneOf"`
	Properties       map[string]json.RawMessage `json:"properties"`
	Required         []string                   `json:"required"`
	Items            json.RawMessage            `json:"items"`
	MinItems         int                        `json:"minItems"`
	MinLength        int                        `json:"minLength"`
	Minimum          *float64                   `json:"minimum"`
	Maximum          *float64                   `json:"maximum"`
	ExclusiveMinimum *float64                   `json:"exclusiveMinimum"`
	ExclusiveMaximum *float64                   `json:"exclusiveMaximum"`
}

// exampleOf returns a value that the JSON Schema allows, with the required properties only.
// The example of no schema is an empty object.
//
// Errors: the schema is invalid, or uses a keyword that examples do not follow.
func exampleOf(text json.RawMessage) (string, error) {
	if len(text) == 0 || string(text) == "null" {
		return "{}", nil
	}
	e := &exampler{root: text}
	value, err := e.value(text, 0)
	if err != nil {
		return "", fmt.Errorf("the demonstration model makes no example of this schema: %w", err)
	}
	example, err := json.Marshal(value)
	return string(example), err
}

// exampler builds one example.
type exampler struct {
	root   json.RawMessage
	values int
}

// value returns a value that the schema allows.
func (e *exampler) value(text json.RawMessage, depth int) (any, error) {
	if e.values++; e.values > maxValues || depth > maxDepth {
		return nil, errors.New("it requires too many values")
	}
	if len(text) == 0 || string(text) == "true" {
		return "example", nil
	}
	var keywords map[string]json.RawMessage
	var s schema
	if json.Unmarshal(text, &keywords) != nil || json.Unmarshal(text, &s) != nil || keywords == nil {
		return nil, errors.New("it has a part that is no object, or a keyword of the wrong type")
	}
	for _, keyword := range unsupported {
		if keywords[keyword] != nil {
			return nil, fmt.Errorf("%s is not supported", keyword)
		}
	}
	switch {
	case keywords["const"] != nil:
		return keywords["const"], nil
	case len(s.Enum) > 0:
		return s.Enum[0], nil
	case s.Ref != "":
		target, err := e.lookUp(s.Ref)
		if err != nil {
			return nil, err
		}
		return e.value(target, depth+1)
	}
	if some := append(s.AnyOf, s.OneOf...); len(some) > 0 {
		if s.Properties != nil || s.Required != nil {
			return nil, errors.New("anyOf and oneOf are not supported next to other keywords")
		}
		return e.first(some, depth)
	}
	return e.typed(&s, depth)
}

// first returns a value for the first alternative that allows one.
func (e *exampler) first(alternatives []json.RawMessage, depth int) (value any, err error) {
	for _, each := range alternatives {
		if value, err = e.value(each, depth+1); err == nil {
			break
		}
	}
	return value, err
}

// typed returns a value of the schema's type.
func (e *exampler) typed(s *schema, depth int) (any, error) {
	kind := s.Type
	if kinds, ok := kind.([]any); ok && len(kinds) > 0 {
		kind = kinds[0]
	}
	if s.MinItems > maxValues || s.MinLength > maxValues {
		return nil, errors.New("it requires too many values")
	}
	switch kind {
	case "object", nil:
		object := map[string]any{}
		for _, name := range s.Required {
			value, err := e.value(s.Properties[name], depth+1)
			if err != nil {
				return nil, err
			}
			object[name] = value
		}
		return object, nil
	case "array":
		items := []any{}
		for range s.MinItems {
			item, err := e.value(s.Items, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, nil
	case "string":
		return "example" + strings.Repeat("x", max(0, s.MinLength-len("example"))), nil
	case "integer", "number":
		return s.number(kind == "integer")
	case "boolean":
		return true, nil
	case "null":
		return nil, nil
	}
	return nil, fmt.Errorf("type %v is unknown", kind)
}

// number returns 1 if the limits allow it, else a number next to one of them.
func (s *schema) number(integer bool) (any, error) {
	within := func(n float64) bool {
		return (s.Minimum == nil || n >= *s.Minimum) && (s.Maximum == nil || n <= *s.Maximum) &&
			(s.ExclusiveMinimum == nil || n > *s.ExclusiveMinimum) && (s.ExclusiveMaximum == nil || n < *s.ExclusiveMaximum)
	}
	tries := []float64{1}
	for _, limit := range []*float64{s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum} {
		if limit != nil {
			tries = append(tries, *limit, math.Ceil(*limit), math.Floor(*limit), math.Floor(*limit)+1, math.Ceil(*limit)-1)
		}
	}
	for _, n := range tries {
		if within(n) && (!integer || n == math.Trunc(n)) {
			return n, nil
		}
	}
	return nil, errors.New("no number was found within its limits")
}

// lookUp returns the part of the root that a reference such as #/$defs/name points to.
func (e *exampler) lookUp(reference string) (json.RawMessage, error) {
	part := e.root
	for name := range strings.SplitSeq(reference, "/") {
		if name == "#" {
			continue
		}
		var members map[string]json.RawMessage
		if _ = json.Unmarshal(part, &members); members[name] == nil { // no object has no members
			return nil, fmt.Errorf("the reference %q is not part of the schema", reference)
		}
		part = members[name]
	}
	return part, nil
}
