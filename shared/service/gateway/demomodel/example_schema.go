package demomodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// resolve returns the keywords of a schema, merged with those of its $ref and
// of every part of allOf.
func (e *exampler) resolve(text json.RawMessage, depth int) (schema, error) {
	if depth > maxDepth {
		return nil, errors.New("it has no end")
	}
	switch string(text) {
	case "", "true":
		// Anything is allowed; a string is the simplest value.
		return schema{"type": json.RawMessage(`"string"`)}, nil
	case "false":
		return nil, errors.New("false allows no value")
	}
	var s schema
	if err := json.Unmarshal(text, &s); err != nil || s == nil {
		return nil, errors.New("it is no object")
	}
	if len(s) == 0 && depth > 0 {
		return schema{"type": json.RawMessage(`"string"`)}, nil
	}
	if _, ok := s["$ref"]; ok {
		var pointer string
		if err := s.read("$ref", &pointer); err != nil {
			return nil, err
		}
		target, err := e.lookUp(pointer)
		if err != nil {
			return nil, err
		}
		referred, err := e.resolve(target, depth+1)
		if err != nil {
			return nil, err
		}
		delete(s, "$ref")
		if s, err = merge(s, referred); err != nil {
			return nil, err
		}
	}
	if _, ok := s["allOf"]; ok {
		var parts []json.RawMessage
		if err := s.read("allOf", &parts); err != nil {
			return nil, err
		}
		delete(s, "allOf")
		for _, part := range parts {
			resolved, err := e.resolve(part, depth+1)
			if err != nil {
				return nil, err
			}
			if s, err = merge(s, resolved); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// lookUp returns the part of the root that a reference such as #/$defs/name
// points to.
func (e *exampler) lookUp(reference string) (json.RawMessage, error) {
	path, ok := strings.CutPrefix(reference, "#")
	if !ok {
		return nil, fmt.Errorf("the reference %q leads out of the schema", reference)
	}
	part := e.root
	for i, name := range strings.Split(path, "/") {
		if i == 0 {
			if name != "" {
				return nil, fmt.Errorf("the reference %q is no JSON Pointer", reference)
			}
			continue
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		var members map[string]json.RawMessage
		var items []json.RawMessage
		switch {
		case json.Unmarshal(part, &members) == nil:
			part = members[name]
		case json.Unmarshal(part, &items) == nil:
			if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(items) {
				part = items[n]
				continue
			}
			part = nil
		}
		if part == nil {
			return nil, fmt.Errorf("the reference %q leads nowhere", reference)
		}
	}
	return part, nil
}

// merge returns a schema that allows what both allow. It fails if both have a
// keyword that cannot be merged.
func merge(a, b schema) (schema, error) {
	merged := maps.Clone(a)
	for keyword, theirs := range b {
		ours, both := merged[keyword]
		if !both || string(ours) == string(theirs) {
			merged[keyword] = theirs
			continue
		}
		joined, err := mergeKeyword(keyword, ours, theirs)
		if err != nil {
			return nil, err
		}
		merged[keyword] = joined
	}
	return merged, nil
}

func mergeKeyword(keyword string, a, b json.RawMessage) (json.RawMessage, error) {
	switch keyword {
	case "title", "description", "default", "examples", "$comment", "$defs", "definitions", "$schema", "$id",
		"deprecated", "readOnly", "writeOnly", "discriminator":
		return a, nil
	case "properties":
		return mergeProperties(a, b)
	case "items", "additionalProperties":
		return json.Marshal(map[string]any{"allOf": []json.RawMessage{a, b}})
	case "required":
		return combine(a, b, func(x, y []string) []string {
			return append(x, slices.DeleteFunc(y, func(name string) bool { return slices.Contains(x, name) })...)
		})
	case "enum":
		return combine(a, b, func(x, y []any) []any {
			return slices.DeleteFunc(x, func(value any) bool { return !slices.Contains(y, value) })
		})
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return combine(a, b, func(x, y float64) float64 { return max(x, y) })
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return combine(a, b, func(x, y float64) float64 { return min(x, y) })
	case "uniqueItems":
		return combine(a, b, func(x, y bool) bool { return x || y })
	case "type":
		return mergeTypes(a, b)
	}
	return nil, fmt.Errorf("%s stands twice in what is to hold together", keyword)
}

// combine merges two values of a keyword.
func combine[T any](a, b json.RawMessage, join func(x, y T) T) (json.RawMessage, error) {
	var x, y T
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		return nil, errors.New("a keyword has the wrong form")
	}
	return json.Marshal(join(x, y))
}

// mergeProperties merges the properties of two objects: ours first, in order.
func mergeProperties(a, b json.RawMessage) (json.RawMessage, error) {
	var ours, theirs map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(a, &ours), json.Unmarshal(b, &theirs)); err != nil {
		return nil, errors.New("properties has the wrong form")
	}
	names, err := keys(a)
	if err != nil {
		return nil, err
	}
	more, err := keys(b)
	if err != nil {
		return nil, err
	}
	var members []string
	for _, name := range append(names, slices.DeleteFunc(more, func(name string) bool { return ours[name] != nil })...) {
		value := ours[name]
		switch {
		case value == nil:
			value = theirs[name]
		case theirs[name] != nil && string(value) != string(theirs[name]):
			if value, err = json.Marshal(map[string]any{"allOf": []json.RawMessage{value, theirs[name]}}); err != nil {
				return nil, err
			}
		}
		label, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		members = append(members, string(label)+":"+string(value))
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}"), nil
}

// mergeTypes returns the types that both allow.
func mergeTypes(a, b json.RawMessage) (json.RawMessage, error) {
	x, y := typesOf(a), typesOf(b)
	var both []string
	for _, kind := range x {
		if slices.Contains(y, kind) || kind == "integer" && slices.Contains(y, "number") {
			both = append(both, kind)
		} else if kind == "number" && slices.Contains(y, "integer") {
			both = append(both, "integer")
		}
	}
	if len(both) == 0 {
		return nil, errors.New("no type is allowed by all")
	}
	return json.Marshal(both)
}

func typesOf(text json.RawMessage) []string {
	var one string
	if json.Unmarshal(text, &one) == nil {
		return []string{one}
	}
	var several []string
	_ = json.Unmarshal(text, &several) // what is no list of names allows none
	return several
}
