package api

import (
	"cmp"
	"net/http"
	"strings"
	"sync"

	"cutroom/shared/service/api/openapi"
)

func OpenAPI(s *service) []route {
	// Build the document on first use. Otherwise functions for other routes would start more slowly.
	document := sync.OnceValues(s.openAPI)
	page := sync.OnceValues(s.newDocsPage)
	return []route{
		{method: http.MethodGet, path: "/openapi.json", handle: func(w http.ResponseWriter, _ *http.Request, _ call) error {
			text, err := document()
			if err == nil {
				writeBody(w, http.StatusOK, text)
			}
			return err
		}},
		{method: http.MethodGet, path: "/docs", handle: func(w http.ResponseWriter, _ *http.Request, _ call) error {
			p, err := page()
			if err == nil {
				p.write(w)
			}
			return err
		}},
	}
}

const DefaultInferenceURL = "http://127.0.0.1:8081"

func (s *service) inferenceURL() string { return cmp.Or(s.InferenceURL, DefaultInferenceURL) }

func (s *service) openAPI() ([]byte, error) {
	deploy := openapi.Deploy{Catalog: s.Catalog, InferenceURL: s.inferenceURL(), MaxBody: s.maxBody()}
	for _, group := range AllGroups() {
		for _, route := range group(s) {
			if route.serves == nil {
				continue
			}
			prefix, _, _ := strings.Cut(route.path, "{")
			deploy.Routes = append(deploy.Routes, openapi.ModelRoute{
				Prefix: prefix, Models: route.models(s.Catalog), Form: route.formOf,
			})
		}
	}
	return openapi.Document(deploy)
}
