package api

import (
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"cutroom/shared/domain/catalog"
)

//go:embed openapi.yaml
var openapiSource string

//go:embed openapi_components.yaml
var openapiComponents string

// document is the OpenAPI 3.1 description of the service while it is built.
type document struct {
	catalog *catalog.Catalog
	// operations come from openapi.yaml, refusals from openapi_components.yaml.
	operations, refusals object
	paths                object
}

// describe builds the OpenAPI document of the routes. It completes the operations
// of openapi.yaml by what the routes themselves define, and replaces a route that
// takes model names by one path for every name of every model.
//
// Errors: a route is missing from openapi.yaml.
func (s *service) describe(routes []route) (object, error) {
	names := s.exampleNames()
	source, err := readObject(names.Replace(openapiSource))
	if err != nil {
		return nil, err
	}
	components, err := readObject(names.Replace(openapiComponents))
	if err != nil {
		return nil, err
	}
	gateway, err := readObject(names.Replace(openapiGateway))
	if err != nil {
		return nil, err
	}
	d := &document{catalog: s.Catalog, operations: source.object("operations"), refusals: components.object("refusals")}
	for i := range routes {
		if err := d.add(&routes[i]); err != nil {
			return nil, fmt.Errorf("openapi.yaml, %s %s: %w", routes[i].method, routes[i].path, err)
		}
	}
	return object{
		{"openapi", "3.1.0"},
		{"info", source.get("info")},
		// Relative to the document: a gateway may serve both below a prefix.
		{"servers", []any{object{{"url", "."}}}},
		{"tags", source.get("tags")},
		{"paths", append(d.paths, s.gatewayPaths(gateway)...)},
		{"components", merged(
			components.without("refusals").set("responses", d.sharedResponses()), gateway.object("components"))},
	}, nil
}

// exampleNames replaces the placeholders for names and numbers of this service.
func (s *service) exampleNames() *strings.Replacer {
	// Examples use the first model that has an alias.
	models := s.Catalog.Models()
	id, alias := models[0].ID, models[0].ID
	if i := slices.IndexFunc(models, func(m *catalog.Model) bool { return len(m.Aliases) > 0 }); i >= 0 {
		id, alias = models[i].ID, models[i].Aliases[0]
	}
	var names []string
	for _, m := range models {
		names = append(names, m.Names()...)
	}
	inference := "my-model"
	if rows := s.Catalog.InferenceModels(); len(rows) > 0 {
		inference = rows[0].ID
	}
	return strings.NewReplacer("$inference_model", inference, "$every_name", strings.Join(names, ", "),
		"$model", id, "$alias", alias,
		"$max_upload", strconv.FormatInt(s.MaxUpload, 10), "$max_body", strconv.FormatInt(s.maxBody(), 10))
}

// add adds a route's operation.
func (d *document) add(route *route) error {
	operation := d.operations.object(route.method + " " + route.path)
	if operation == nil {
		return errors.New("there is no such operation")
	}
	path := operation.text("path")
	if path == "" {
		path = route.path
	}
	video := operation.object("deprecated_videos")
	operation = operation.without("path", "deprecated_videos")
	complete, err := d.complete(route, operation)
	if err != nil {
		return err
	}
	if route.serves == nil {
		d.put(path, route.method, complete)
		return nil
	}
	for _, m := range video {
		operation = operation.set(m.name, m.value)
	}
	completeVideo, err := d.complete(route, operation)
	if err != nil {
		return err
	}
	prefix, _, _ := strings.Cut(path, "{")
	for _, m := range route.models(d.catalog) {
		operation := complete
		if m.Generate == catalog.GenerateDeprecated {
			operation = completeVideo
		}
		for _, name := range m.Names() {
			d.put(prefix+name, route.method, forModel(operation, m, name, route.formOf(m)))
		}
	}
	return nil
}

func (d *document) put(path, method string, operation object) {
	methods := d.paths.object(path)
	d.paths = d.paths.set(path, methods.set(strings.ToLower(method), operation))
}

// complete expands the shorthands of a route's operation and adds what the route
// defines.
func (d *document) complete(route *route, operation object) (object, error) {
	responses := object{}
	for _, answer := range operation.object("responses") {
		status, err := strconv.Atoi(answer.name)
		if err != nil {
			return nil, fmt.Errorf("the status %q is not a number", answer.name)
		}
		response, _ := answer.value.(object)
		if counted(route) && status < 400 {
			response = response.set("headers", append(rateHeaders(), response.object("headers")...))
		}
		responses = append(responses, member{answer.name, completeResponse(status, response)})
	}
	statuses := refusalsOf(route)
	refusals, _ := operation.get("refusals").([]any)
	for _, refusal := range refusals {
		status, _ := strconv.Atoi(fmt.Sprint(refusal))
		statuses = append(statuses, status)
	}
	for _, status := range statuses {
		name := strconv.Itoa(status)
		if d.refusals.get(name) == nil {
			return nil, fmt.Errorf("there is no refusal %d", status)
		}
		if responses.get(name) == nil {
			responses = append(responses, member{name, reference("responses", sharedName(status))})
		}
	}
	slices.SortFunc(responses, func(a, b member) int { return strings.Compare(a.name, b.name) })
	if body := operation.object("requestBody"); body != nil {
		operation = operation.set("requestBody", completeBody(body))
	}
	security := []any{} // none required
	if route.access != public {
		security = append(security, object{{"key", []any{}}})
	}
	operation = operation.set("security", security)
	return operation.without("refusals").set("responses", responses), nil
}

// completeBody expands the shorthand for the upload form.
func completeBody(body object) object {
	content := body.object("content")
	const form = "multipart/form-data"
	if content.text(form) != "upload" {
		return body
	}
	return body.set("content", content.set(form, formBody(uploadForm()).object("content").get(form)))
}

// counted reports whether calls of a route count against the rate of a tier.
func counted(route *route) bool { return route.access != public && !route.unlimited }

// refusalsOf returns the error statuses that follow from a route's definition.
func refusalsOf(route *route) []int {
	var statuses []int
	if route.access != public {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden,
			http.StatusUnprocessableEntity, http.StatusServiceUnavailable)
	}
	if counted(route) {
		statuses = append(statuses, http.StatusTooManyRequests)
	}
	if route.serves != nil {
		statuses = append(statuses, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
			http.StatusTooManyRequests, http.StatusInsufficientStorage)
	}
	return statuses
}

// rateHeaders returns the header fields of responses whose calls are counted.
func rateHeaders() object {
	return object{
		{"RateLimit-Limit", reference("headers", "RateLimitLimit")},
		{"RateLimit-Remaining", reference("headers", "RateLimitRemaining")},
		{"RateLimit-Reset", reference("headers", "RateLimitReset")},
	}
}

// completeResponse adds a response's body and the header fields that every response
// has.
func completeResponse(status int, response object) object {
	schema := response.text("json")
	switch {
	case schema != "" || response.get("content") != nil || status < 400:
	case status == http.StatusUnprocessableEntity:
		schema = "ValidationError"
	default:
		schema = "Detail"
	}
	headers := object{{"x-request-id", reference("headers", "RequestId")}}
	headers = append(headers, response.object("headers")...)
	response = response.without("json").set("headers", headers)
	if schema != "" {
		response = response.set("content", object{{"application/json", object{{"schema", reference("schemas", schema)}}}})
	}
	return response
}

// sharedResponses returns the refusals as components.
func (d *document) sharedResponses() object {
	var responses object
	for _, refusal := range d.refusals {
		status, _ := strconv.Atoi(refusal.name)
		response := object{{"description", refusal.value}}
		if status == http.StatusTooManyRequests {
			response = response.set("headers", append(object{{"Retry-After", reference("headers", "RetryAfter")}},
				rateHeaders()...))
		}
		responses = append(responses, member{sharedName(status), completeResponse(status, response)})
	}
	return responses
}

func sharedName(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

func reference(kind, name string) object {
	return object{{"$ref", "#/components/" + kind + "/" + name}}
}

// forModel returns an operation for one name of a model.
func forModel(operation object, m *catalog.Model, name string, form *catalog.Form) object {
	if name != m.ID {
		operation = operation.
			set("description", strings.TrimSpace("Another name of `"+m.ID+"`. "+operation.text("description"))).
			set("x-alias-of", m.ID) // so that a page can show a model's names together
	}
	if slices.Contains(m.DeprecatedAliases, name) {
		operation = operation.set("deprecated", true)
	}
	return operation.
		set("operationId", operation.text("operationId")+"_"+name).
		set("summary", strings.TrimSuffix(m.Description, ".")).
		set("requestBody", formBody(form))
}
