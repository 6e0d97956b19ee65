package openapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cutroom/shared/domain/catalog"
)

func (d Deploy) overlay(base object) (object, error) {
	overlay, err := readObject(overlaySource)
	if err != nil {
		return nil, err
	}
	actions, _ := d.fill(overlay.get("actions")).([]any)
	models, err := d.modelActions(base.object("paths"))
	return overlay.set("actions", append(actions, models...)), err
}

func (d Deploy) fill(value any) any { return fill(value, d.replacer(), d.names()) }

func fill(value any, words *strings.Replacer, names []any) any {
	switch value := value.(type) {
	case object:
		filled := make(object, len(value))
		for i, m := range value {
			filled[i] = member{m.name, fill(m.value, words, names)}
		}
		return filled
	case []any:
		var filled []any
		for _, item := range value {
			if item == "$every_name" {
				filled = append(filled, names...)
			} else {
				filled = append(filled, fill(item, words, names))
			}
		}
		return filled
	case string:
		return words.Replace(value)
	}
	return value
}

func (d Deploy) names() (names []any) {
	for _, m := range d.Catalog.Models() {
		for _, name := range m.Names() {
			names = append(names, name)
		}
	}
	return names
}

// The document's examples use the first model that has an alias.
func (d Deploy) replacer() *strings.Replacer {
	models := d.Catalog.Models()
	id, alias := models[0].ID, models[0].ID
	if i := slices.IndexFunc(models, func(m *catalog.Model) bool { return len(m.Aliases) > 0 }); i >= 0 {
		id, alias = models[i].ID, models[i].Aliases[0]
	}
	inference := "my-model"
	if rows := d.Catalog.InferenceModels(); len(rows) > 0 {
		inference = rows[0].ID
	}
	return strings.NewReplacer("$inference_model", inference, "$inference_url", d.InferenceURL, "$model", id, "$alias", alias,
		"$max_body", strconv.FormatInt(d.MaxBody, 10))
}

// modelActions replaces the example paths with a path for every name of every model.
func (d Deploy) modelActions(base object) (actions []any, err error) {
	var paths object
	for _, m := range base {
		if strings.Contains(m.name, "/example") {
			actions = append(actions, object{{"target", "$.paths['" + m.name + "']"}, {"remove", true}})
		}
	}
	for _, route := range d.Routes {
		for _, m := range route.Models {
			example := exampleOf(route.Prefix, m)
			operation := base.object(example).object("post")
			if operation == nil {
				return nil, fmt.Errorf("openapi.yaml has no %s", example)
			}
			for _, name := range m.Names() {
				paths = append(paths, member{route.Prefix + name, object{{"post", forModel(operation, m, name, route.Form(m))}}})
			}
		}
	}
	return append(actions, object{{"target", "$.paths"}, {"update", paths}}), nil
}

// forModel adapts an example path's operation to one name of a model.
func forModel(operation object, m *catalog.Model, name string, form *catalog.Form) object {
	if name != m.ID {
		operation = operation.
			set("description", strings.TrimSpace("Another name of `"+m.ID+"`. "+operation.text("description"))).
			set("x-alias-of", m.ID) // lets a documentation page group all names of a model
	}
	if slices.Contains(m.DeprecatedAliases, name) {
		operation = operation.set("deprecated", true)
	}
	if name == m.ID {
		operation = operation.set("x-model", describe(m)) // texts for menus
	}
	id, _, _ := strings.Cut(operation.text("operationId"), "_example")
	return operation.
		set("operationId", id+"_"+name).
		set("summary", strings.TrimSuffix(m.Description, ".")).
		set("requestBody", formBody(form))
}

func describe(m *catalog.Model) object {
	described := object{{"kind", string(m.Kind)}}
	if m.Title != "" {
		described = append(described, member{"title", m.Title})
	}
	if len(m.Examples) > 0 {
		described = append(described, member{"examples", m.Examples})
	}
	if m.Price != nil {
		price := object{
			{"amount", m.Price.Amount()}, {"per", string(m.Price.Per)}, {"currency", m.Price.Currency},
		}
		if sizes := m.Price.AmountsBySize(); sizes != nil {
			price = append(price, member{"sizes", sizes})
		}
		described = append(described, member{"price", price})
	}
	return described
}
