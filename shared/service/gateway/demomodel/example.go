package demomodel

import (
	"encoding/json"
	"errors"
	"fmt"
)

// unsupported lists the JSON Schema constraint keywords that exampleOf does not support.
var unsupported = []string{
	"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "contains", "pattern", "format", "minLength", "maxLength",
	"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "prefixItems", "minItems", "maxItems",
	"uniqueItems", "minProperties", "maxProperties", "propertyNames", "dependentSchemas", "dependentRequired",
}

// exampleOf returns a value that matches the JSON Schema, with only the required properties. A missing or null schema
// gives an empty object.
//
// It fails if the schema is invalid or uses an unsupported keyword that restricts values.
func exampleOf(text json.RawMessage) (string, error) {
	if len(text) == 0 || string(text) == "null" {
		return "{}", nil
	}
	const most = 64 << 10 // limits the work: each level is parsed again
	if len(text) > most {
		return "", fmt.Errorf("the demonstration model reads at most %d bytes of a schema", most)
	}
	value, err := valueOf(text, 32)
	if err != nil {
		return "", fmt.Errorf("the demonstration model cannot create an example of this schema: %w", err)
	}
	example, err := json.Marshal(value)
	return string(example), err
}

func valueOf(text json.RawMessage, levels int) (any, error) {
	if levels < 0 {
		return nil, errors.New("the schema is nested too deeply")
	}
	if len(text) == 0 || string(text) == "true" {
		return "example", nil
	}
	var keywords map[string]json.RawMessage
	var schema struct {
		Type       any                        `json:"type"`
		Enum       []json.RawMessage          `json:"enum"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Items      json.RawMessage            `json:"items"`
	}
	if json.Unmarshal(text, &keywords) != nil || json.Unmarshal(text, &schema) != nil || keywords == nil {
		return nil, errors.New("a subschema is not an object, or a keyword has the wrong type")
	}
	for _, keyword := range unsupported {
		if keywords[keyword] != nil {
			return nil, fmt.Errorf("%s is not supported", keyword)
		}
	}
	if keywords["const"] != nil {
		return keywords["const"], nil
	}
	if len(schema.Enum) > 0 {
		return schema.Enum[0], nil
	}
	kind := schema.Type
	if kinds, ok := kind.([]any); ok && len(kinds) > 0 {
		kind = kinds[0]
	}
	switch kind {
	case "object", nil:
		object := map[string]any{}
		for _, name := range schema.Required {
			if _, done := object[name]; done {
				continue
			}
			value, err := valueOf(schema.Properties[name], levels-1)
			if err != nil {
				return nil, err
			}
			object[name] = value
		}
		return object, nil
	case "array":
		item, err := valueOf(schema.Items, levels-1)
		return []any{item}, err
	case "string":
		return "example", nil
	case "integer", "number":
		return 1, nil
	case "boolean":
		return true, nil
	case "null":
		return nil, nil
	}
	return nil, fmt.Errorf("unknown type %v", kind)
}
