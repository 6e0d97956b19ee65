package api

import (
	"net/http"
	"net/url"
	"sync"

	"cutroom/shared/domain/catalog"
)

// RealtimePage serves the page where users can try sessions with a camera. Its content security
// policy allows sessions only on the page's own origin, so the session server must serve it. If
// that server has no media API, MediaURL is the media API's URL.
func RealtimePage(s *service) []route {
	page := sync.OnceValues(s.newRealtimePage)
	show := func(w http.ResponseWriter, _ *http.Request, _ call) error {
		p, err := page()
		if err != nil {
			return err
		}
		w.Header().Set("Permissions-Policy", "camera=(self), microphone=()")
		p.write(w)
		return nil
	}
	return []route{{method: http.MethodGet, path: "/realtime", handle: show}}
}

type pageModel struct {
	ID   string       `json:"id"`
	Kind catalog.Kind `json:"kind"`
}

type pageSettings struct {
	Models []pageModel `json:"models"`
	WebRTC bool        `json:"webrtc"`
	// Service is the media API's base URL, or empty if the page's server has the API.
	Service string `json:"service,omitempty"`
}

func (s *service) newRealtimePage() (*page, error) {
	settings := pageSettings{Models: []pageModel{}, WebRTC: s.LiveVideo, Service: s.MediaURL}
	calls := "connect-src 'self'"
	if s.MediaURL != "" {
		service, err := url.Parse(s.MediaURL)
		if err != nil {
			return nil, err
		}
		calls += " " + service.Scheme + "://" + service.Host
	}
	for _, m := range s.Catalog.Models() {
		if m.Realtime {
			settings.Models = append(settings.Models, pageModel{m.ID, m.Kind})
		}
	}
	// The console shows this page in a frame.
	return newPage("realtime", settings, calls, "frame-ancestors 'self'", "img-src data: blob:")
}
