package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
)

type described struct {
	OpenAPI string
	Info    struct{ Version string }
	Paths   map[string]methods
}

type methods map[string]operation

func (m *methods) UnmarshalJSON(text []byte) error {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*m = methods{}
	for name, one := range all {
		if name == "servers" {
			continue
		}
		var o operation
		if err := json.Unmarshal(one, &o); err != nil {
			return err
		}
		_, o.elsewhere = all["servers"]
		(*m)[name] = o
	}
	return nil
}

type operation struct {
	OperationID string
	Deprecated  bool
	AliasOf     string `json:"x-alias-of"`
	Security    []map[string][]string
	RequestBody *struct {
		Content map[string]struct{ Schema formSchema }
	}
	Responses map[string]json.RawMessage
	elsewhere bool
}

type formSchema struct {
	Properties map[string]map[string]any
	Required   []string
}

// bareService returns a service whose handlers can only check the caller.
func bareService(t *testing.T, known *catalog.Catalog) *service {
	t.Helper()
	return &service{Config: Config{
		Catalog: known, Authenticator: credential.NewAuthenticator(nil, nil, time.Now),
		MaxUpload: DefaultMaxUpload, Logger: slog.New(slog.DiscardHandler),
		AccountRoutes: AccountRoutes{Minter: &credential.Minter{
			Now: time.Now, Secret: func(context.Context) ([]byte, error) { return []byte("a secret"), nil },
		}},
	}}
}

func readDocument(t *testing.T, known *catalog.Catalog) described {
	t.Helper()
	answer := httptest.NewRecorder()
	New(bareService(t, known).Config, OpenAPI).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	var d described
	if err := json.Unmarshal(answer.Body.Bytes(), &d); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %.300s", answer.Code, err, answer.Body)
	}
	if d.OpenAPI != "3.1.0" || d.Info.Version != "1.0.0" {
		t.Errorf("OpenAPI %s of version %s, want 3.1.0 of 1.0.0", d.OpenAPI, d.Info.Version)
	}
	return d
}

func family(t *testing.T, name string) *catalog.Catalog {
	t.Helper()
	known, err := catalog.Default(name)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func pathOf(paths map[string]methods, pattern string) string {
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	pattern = strings.TrimSuffix(pattern, "{$}")
	for path := range paths {
		if parameter.ReplaceAllString(path, "{}") == parameter.ReplaceAllString(pattern, "{}") {
			return path
		}
	}
	return ""
}

// The document describes all routes and no others, with credentials, errors and header fields.
func TestOpenAPIDescribesTheRoutes(t *testing.T) {
	known := family(t, "gen")
	s := bareService(t, known)
	paths := readDocument(t, known).Paths
	described := map[string]bool{}
	for _, group := range AllGroups() {
		for _, route := range group(s) {
			var at []string
			for _, m := range route.models(known) {
				for _, name := range m.Names() {
					at = append(at, strings.Replace(route.path, "{id}", name, 1))
				}
			}
			if route.serves == nil {
				at = []string{pathOf(paths, route.path)}
			}
			for _, path := range at {
				operation, found := paths[path][strings.ToLower(route.method)]
				if !found {
					t.Errorf("%s %s is not described", route.method, route.path)
					continue
				}
				described[route.method+" "+path] = true
				t.Run(route.method+" "+path, func(t *testing.T) { checkOperation(t, &route, operation) })
			}
		}
	}
	for path, methods := range paths {
		for method, operation := range methods {
			if name := strings.ToUpper(method) + " " + path; !operation.elsewhere && !described[name] {
				t.Errorf("%s is not a route", name)
			}
		}
	}
}

func checkOperation(t *testing.T, route *route, o operation) {
	t.Helper()
	if secured := len(o.Security) == 1 && o.Security[0]["key"] != nil; secured != (route.access != public) ||
		!secured && len(o.Security) != 0 || o.Security == nil {
		t.Errorf("the security is %v", o.Security)
	}
	var statuses []int
	counted := route.access != public && !route.unlimited
	if route.access != public {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden,
			http.StatusUnprocessableEntity, http.StatusServiceUnavailable)
	}
	if counted {
		statuses = append(statuses, http.StatusTooManyRequests)
	}
	if route.serves != nil {
		statuses = append(statuses, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
			http.StatusTooManyRequests, http.StatusInsufficientStorage)
	}
	for _, status := range statuses {
		if o.Responses[strconv.Itoa(status)] == nil {
			t.Errorf("the response %d is missing", status)
		}
	}
	for status, text := range o.Responses {
		var response struct {
			Ref     string `json:"$ref"`
			Headers map[string]any
			Content map[string]any
		}
		if err := json.Unmarshal(text, &response); err != nil {
			t.Fatal(err)
		}
		if response.Ref != "" {
			continue
		}
		names := []string{"x-request-id"}
		if counted && status < "4" {
			names = append(names, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
		}
		for _, name := range names {
			if response.Headers[name] == nil {
				t.Errorf("the response %s lacks the header %s", status, name)
			}
		}
		if status >= "4" && response.Content["application/json"] == nil && route.path != "/healthz" {
			t.Errorf("the error %s has no body", status)
		}
	}
}

// Exactly the operations that require a credential return 401 without one.
func TestEveryDocumentedOperationExists(t *testing.T) {
	known := family(t, "gen")
	handler := New(bareService(t, known).Config, AllGroups()...)
	ids := map[string]bool{}
	for path, methods := range readDocument(t, known).Paths {
		for method, operation := range methods {
			if ids[operation.OperationID] || operation.OperationID == "" {
				t.Errorf("%s %s: another operation has its id %q", method, path, operation.OperationID)
			}
			ids[operation.OperationID] = true
			if operation.elsewhere {
				continue
			}
			if strings.HasPrefix(path, "/v1/") && operation.Responses["422"] == nil {
				t.Errorf("%s %s: 422 is missing", method, path)
			}
			secured := len(operation.Security) == 1 && operation.Security[0]["key"] != nil
			if operation.Responses["401"] != nil != secured || secured && operation.Responses["403"] == nil {
				t.Errorf("%s %s: its 401 and 403 do not match whether it requires a key", method, path)
			}
			request := httptest.NewRequest(strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path), nil)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			switch {
			case answer.Code == http.StatusNotFound, answer.Code == http.StatusMethodNotAllowed,
				(answer.Code == http.StatusUnauthorized) != secured:
				t.Errorf("%s %s without a key: status %d", method, path, answer.Code)
			case answer.Code != http.StatusUnauthorized && operation.Responses[strconv.Itoa(answer.Code)] == nil:
				t.Errorf("%s %s: the status %d is not in the document", method, path, answer.Code)
			}
		}
	}
}

func TestOpenAPIFollowsTheCatalog(t *testing.T) {
	for _, name := range []string{"gen", "acme"} {
		known := family(t, name)
		paths := readDocument(t, known).Paths
		for _, m := range known.Models() {
			for _, alias := range m.Names() {
				path := "/v1/jobs/" + alias
				operation := paths[path]["post"]
				if operation.RequestBody == nil {
					t.Fatalf("%s does not exist", path)
				}
				if want := slices.Contains(m.DeprecatedAliases, alias); operation.Deprecated != want {
					t.Errorf("%s: deprecated is %t, want %t", path, operation.Deprecated, want)
				}
				if isAlias := operation.AliasOf == m.ID; isAlias != (alias != m.ID) {
					t.Errorf("%s is described as an alias of %q", path, operation.AliasOf)
				}
				types := []string{"multipart/form-data"}
				if m.Form.URLEncoded {
					types = []string{"application/x-www-form-urlencoded", "multipart/form-data"}
				}
				if got := slices.Sorted(maps.Keys(operation.RequestBody.Content)); !slices.Equal(got, types) {
					t.Errorf("%s accepts %v, want %v", path, got, types)
				}
				for kind, content := range operation.RequestBody.Content {
					checkFormSchema(t, path+" "+kind, jobForm(m), content.Schema)
				}
			}
		}
		for _, m := range known.Models() {
			for _, alias := range m.Names() {
				operation, there := paths["/v1/generate/"+alias]["post"]
				if there != (m.Generate != catalog.NotGenerated) {
					t.Errorf("/v1/generate/%s does not match its model", alias)
				}
				if want := m.Generate == catalog.GenerateDeprecated || slices.Contains(m.DeprecatedAliases, alias); there &&
					operation.Deprecated != want {
					t.Errorf("/v1/generate/%s: deprecated is %t, want %t", alias, operation.Deprecated, want)
				}
			}
		}
		for path := range paths {
			if rest, found := strings.CutPrefix(path, "/v1/jobs/"); found && !strings.HasPrefix(rest, name+"-") &&
				!strings.HasPrefix(rest, "{") {
				t.Errorf("family %s: unexpected %s", name, path)
			}
		}
	}
}

func checkFormSchema(t *testing.T, where string, form *catalog.Form, schema formSchema) {
	t.Helper()
	names := 0
	for _, field := range form.Fields {
		for _, name := range []string{field.Name, field.Also} {
			if name == "" {
				continue
			}
			names++
			property := schema.Properties[name]
			if property == nil {
				t.Errorf("%s has no field %s", where, name)
			}
			if field.Type.IsFile() != (property["format"] == "binary") {
				t.Errorf("%s: the field %s is %v", where, name, property)
			}
		}
		if field.Required != slices.Contains(schema.Required, field.Name) {
			t.Errorf("%s: required is wrong for %s", where, field.Name)
		}
	}
	if len(schema.Properties) != names {
		t.Errorf("%s has %d fields, want %d", where, len(schema.Properties), names)
	}
}
