package api

import (
	"net/http"
	"sync"

	"cutroom/shared/domain/catalog"
)

// RealtimePage is the group of the page on which people try realtime sessions
// with a camera. It is served where the sessions are, as a page may open them on
// its own origin alone.
func RealtimePage(s *service) []route {
	page := sync.OnceValues(s.newRealtimePage)
	return []route{{method: http.MethodGet, path: "/realtime", handle: func(w http.ResponseWriter, _ *http.Request, _ call) error {
		p, err := page()
		if err == nil {
			w.Header().Set("Permissions-Policy", "camera=(self), microphone=()")
			p.write(w)
		}
		return err
	}}}
}

// pageModel is what the page says of a model.
type pageModel struct {
	ID   string       `json:"id"`
	Kind catalog.Kind `json:"kind"`
}

// newRealtimePage makes the page for the models that have sessions.
func (s *service) newRealtimePage() (*page, error) {
	models := []pageModel{}
	for _, m := range s.Catalog.Models() {
		if m.Realtime {
			models = append(models, pageModel{m.ID, m.Kind})
		}
	}
	// The console frames it.
	return newPage("realtime", models, "connect-src 'self'", "frame-ancestors 'self'", "img-src data: blob:")
}
