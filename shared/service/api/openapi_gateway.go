package api

import (
	"cmp"
	_ "embed"
)

//go:embed openapi_gateway.yaml
var openapiGateway string

// DefaultInferenceURL is the gateway's documented URL unless another is configured.
const DefaultInferenceURL = "http://127.0.0.1:8081"

// inferenceURL returns the gateway's URL for the document.
func (s *service) inferenceURL() string { return cmp.Or(s.InferenceURL, DefaultInferenceURL) }

// gatewayPaths returns the paths of the inference gateway, each with its server.
func (s *service) gatewayPaths(gateway object) object {
	server := object{{"url", s.inferenceURL()}, {"description", "The inference gateway."}}
	var paths object
	for _, path := range gateway.object("paths") {
		operations, _ := path.value.(object)
		paths = append(paths, member{path.name, append(object{{"servers", []any{server}}}, operations...)})
	}
	return paths
}

// merged returns the components of two documents merged.
func merged(components, more object) object {
	for _, kind := range more {
		added, _ := kind.value.(object)
		components = components.set(kind.name, append(components.object(kind.name), added...))
	}
	return components
}
