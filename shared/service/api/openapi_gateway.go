package api

import (
	"cmp"
	_ "embed"
)

//go:embed openapi_gateway.yaml
var openapiGateway string

// DefaultInferenceURL is where the gateway is said to be when nothing else is set.
const DefaultInferenceURL = "http://127.0.0.1:8081"

// inferenceURL is where the gateway is said to be.
func (s *service) inferenceURL() string { return cmp.Or(s.InferenceURL, DefaultInferenceURL) }

// gatewayPaths are the paths of the inference gateway, each with the server that it
// is at.
func (s *service) gatewayPaths(gateway object) object {
	server := object{{"url", s.inferenceURL()}, {"description", "The inference gateway."}}
	var paths object
	for _, path := range gateway.object("paths") {
		operations, _ := path.value.(object)
		paths = append(paths, member{path.name, append(object{{"servers", []any{server}}}, operations...)})
	}
	return paths
}

// merged gives the components of two documents as one.
func merged(components, more object) object {
	for _, kind := range more {
		added, _ := kind.value.(object)
		components = components.set(kind.name, append(components.object(kind.name), added...))
	}
	return components
}
