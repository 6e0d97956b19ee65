package openapi

import (
	"slices"

	"cutroom/shared/domain/catalog"
)

// formBody describes a form, based on the definition that also validates requests.
func formBody(form *catalog.Form) object {
	var properties, encoding object
	var required, spellings []any
	for i := range form.Fields {
		field := &form.Fields[i]
		for _, name := range fieldNames(field) {
			properties = append(properties, member{name, fieldSchema(form, field, name)})
			if field.Type == catalog.VideoFile || field.Type == catalog.ImageFile {
				encoding = append(encoding, member{name, object{{"contentType", string(field.Type) + "/*"}}})
			}
		}
		if field.Required {
			required = append(required, field.Name)
		}
		if field.Also != "" {
			spellings = append(spellings, object{{"not", object{{"required", []any{field.Name, field.Also}}}}})
		}
	}
	schema := object{{"type", "object"}, {"properties", properties}}
	if required != nil {
		schema = append(schema, member{"required", required})
	}
	if rules := append(spellings, formRules(form)...); rules != nil {
		schema = append(schema, member{"allOf", rules})
	}
	parts := object{{"schema", schema}}
	if encoding != nil {
		parts = append(parts, member{"encoding", encoding})
	}
	content := object{{"multipart/form-data", parts}}
	if form.URLEncoded {
		content = object{
			{"application/x-www-form-urlencoded", object{{"schema", schema}}},
			{"multipart/form-data", parts},
		}
	}
	return object{{"required", true}, {"content", content}}
}

func fieldNames(field *catalog.Field) []string {
	if field.Also == "" {
		return []string{field.Name}
	}
	return []string{field.Name, field.Also}
}

func fieldSchema(form *catalog.Form, field *catalog.Field, name string) object {
	description := field.Description
	if name != field.Name {
		description = "Another name of `" + field.Name + "`. Send one of them."
	}
	s := object{{"description", description}}
	add := func(name string, value any) { s = append(s, member{name, value}) }
	switch field.Type {
	case catalog.VideoFile, catalog.ImageFile:
		s = s.set("description", description+" A file, or the id of a stored one.")
		fallthrough
	case catalog.AnyFile:
		// OpenAPI 3.1 would use contentMediaType, but fewer tools support it.
		add("type", "string")
		add("format", "binary")
		add("minLength", 1) // empty files are rejected
	case catalog.Integer:
		add("type", "integer")
		if field.Min != nil {
			add("minimum", *field.Min)
		}
		if field.Max != nil {
			add("maximum", *field.Max)
		}
	case catalog.Boolean:
		add("type", "boolean")
	case catalog.Choice:
		add("type", "string")
		add("enum", field.Values)
	default:
		add("type", "string")
		if field.Required || slices.Contains(form.ExactlyOne, field.Name) {
			add("minLength", 1) // an empty value counts as absent
			if field.Name == catalog.PromptField {
				add("pattern", `\S`) // white space counts as absent too
			}
		}
		if field.Max != nil {
			add("maxLength", *field.Max)
		}
		switch field.Name {
		case catalog.PromptField:
			add("examples", []any{"a watercolor painting"})
		case catalog.WebhookField:
			add("format", "uri")
			add("pattern", "^https://")
			add("examples", []any{"https://example.com/hooks/edits"})
		}
	}
	if _, conditional := form.OnlyWith[field.Name]; field.Default != nil && !conditional {
		// Omit conditional defaults, because generated clients would always send them, but they are invalid without
		// the other field.
		add("default", field.Default)
	}
	return s
}

func formRules(form *catalog.Form) []any {
	var rules []any
	if len(form.ExactlyOne) > 0 {
		var one []any
		for _, name := range form.ExactlyOne {
			one = append(one, carries(form, name))
		}
		rules = append(rules, object{{"oneOf", one}})
	}
	for i := range form.Fields {
		field := &form.Fields[i]
		if with, ok := form.OnlyWith[field.Name]; ok {
			rules = append(rules, object{{"anyOf", []any{
				object{{"not", carries(form, field.Name)}},
				carries(form, with),
			}}})
		}
	}
	return rules
}

func carries(form *catalog.Form, name string) object {
	field, _ := form.Field(name)
	if field.Also == "" {
		return object{{"required", []any{field.Name}}}
	}
	return object{{"anyOf", []any{
		object{{"required", []any{field.Name}}},
		object{{"required", []any{field.Also}}},
	}}}
}
