// Package openapi builds the OpenAPI document of both services from openapi.yaml. OpenAPI Overlays
// adapt it to a deployment: deploy.overlay.yaml sets names and settings, and generated actions add
// the paths of the catalog's models.
package openapi

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"cutroom/shared/domain/catalog"
)

//go:embed openapi.yaml
var baseSource string

//go:embed deploy.overlay.yaml
var overlaySource string

type Deploy struct {
	Catalog *catalog.Catalog
	// Routes lists the routes whose paths end in a model's name.
	Routes       []ModelRoute
	InferenceURL string
	// MaxBody is in bytes.
	MaxBody int64
}

// ModelRoute has a path for every name of each of its models.
type ModelRoute struct {
	Prefix string
	Models []*catalog.Model
	Form   func(*catalog.Model) *catalog.Form
}

func Document(d Deploy) ([]byte, error) {
	base, err := readObject(baseSource)
	if err != nil {
		return nil, err
	}
	overlay, err := d.overlay(base)
	if err != nil {
		return nil, err
	}
	document, err := apply(base, overlay)
	if err != nil {
		return nil, err
	}
	return json.Marshal(d.ordered(document, base))
}

// ordered moves the models' paths to the positions of their examples.
func (d Deploy) ordered(document, base object) object {
	paths := slices.Clone(document.object("paths"))
	rank := func(path string) int {
		for _, route := range d.Routes {
			if strings.HasPrefix(path, route.Prefix) && base.object("paths").get(path) == nil {
				return base.object("paths").index(exampleOf(route.Prefix, route.Models[0]))
			}
		}
		return base.object("paths").index(path)
	}
	slices.SortStableFunc(paths, func(a, b member) int { return rank(a.name) - rank(b.name) })
	return document.set("paths", paths)
}

// exampleOf returns the path in openapi.yaml that is the template for a model's paths.
func exampleOf(prefix string, m *catalog.Model) string {
	switch {
	case prefix == "/v1/jobs/":
		return prefix + "example"
	case m.Generate == catalog.GenerateDeprecated:
		return prefix + "example-video"
	default:
		return prefix + "example-image"
	}
}
