package api

import (
	"encoding/json"
	"net/http"
	"sync"
)

// OpenAPI is the group of the OpenAPI document of all groups, and of the page that
// shows it. Neither needs a credential.
func OpenAPI(s *service) []route {
	// Built on the first request, so that a program that serves other calls starts
	// without this work.
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

// openAPI returns the OpenAPI document of all groups as JSON.
func (s *service) openAPI() ([]byte, error) {
	var routes []route
	for _, group := range allGroups() {
		routes = append(routes, group(s)...)
	}
	document, err := s.describe(routes)
	if err != nil {
		return nil, err
	}
	return json.Marshal(document)
}
