package api

import (
	"net/http"
	"strings"
)

func Root(s *service) []route {
	return []route{{method: http.MethodGet, path: "/{$}", handle: s.showRoot}}
}

// Links are relative to the requested URL.
type rootBody struct {
	Service string `json:"service"`
	Docs    string `json:"docs"`
	OpenAPI string `json:"openapi"`
	Health  string `json:"health"`
	Console string `json:"console,omitempty"`
}

func (s *service) showRoot(w http.ResponseWriter, r *http.Request, _ call) error {
	header := w.Header()
	header.Add("Vary", "Accept")
	header.Set("Link", `<./docs>; rel="service-doc", <./openapi.json>; rel="service-desc"`)
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		header.Set("Location", "./docs")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return nil
	}
	s.writeJSON(w, r, http.StatusOK, rootBody{
		Service: "Cutroom media service", Docs: "./docs", OpenAPI: "./openapi.json", Health: "./healthz",
		Console: s.ConsoleURL,
	})
	return nil
}
