package realtime

import (
	"net/http"
	"strings"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/realtime/room"
)

const watchPath = "/watch-stream/"

// watch returns a token for a session's room (docs/contract/realtime.md#watching). The caller must belong to the
// session's account, and its credential must permit the session's model and the page.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	s.config.Origins.Allow(w.Header(), r, exposed)
	if httpserver.IsPreflight(r) {
		httpserver.AnswerPreflight(w, r, http.MethodPost)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeDetail(w, http.StatusMethodNotAllowed, "Method Not Allowed")
		return
	}
	leave, ok := s.arrive(r)
	if !ok {
		w.Header().Set("Retry-After", "2")
		writeDetail(w, http.StatusServiceUnavailable, "Too many connections are being opened. Try again.")
		return
	}
	defer leave()
	who, err := s.config.Authenticator.Authenticate(r.Context(), r.Header.Get("x-api-key"))
	switch {
	case fault.Is(err, fault.Unauthorized):
		writeDetail(w, http.StatusUnauthorized, invalidKey.message)
		return
	case fault.Is(err, fault.Limited):
		w.Header().Set("Retry-After", "60")
		writeDetail(w, http.StatusTooManyRequests, tooManyFailures.message)
		return
	case err != nil:
		s.config.Logger.Error("cannot authenticate a viewer", "error", err)
		w.Header().Set("Retry-After", "2")
		writeDetail(w, http.StatusServiceUnavailable, "The server is busy. Try again.")
		return
	}
	httpserver.SetAccount(r.Context(), who.Account())
	name := strings.TrimPrefix(r.URL.Path, watchPath)
	noRoom := func() { writeDetail(w, http.StatusNotFound, "The room does not exist.") }
	if s.forward(w, r, name, noRoom) {
		return
	}
	c := s.inRoom(name)
	if c == nil || c.admission.who.Account() != who.Account() {
		noRoom()
		return
	}
	if origin := r.Header.Get("Origin"); !who.Scope().AllowsOrigin(origin) ||
		origin != "" && !s.config.Origins.Allows(origin) {
		writeDetail(w, http.StatusForbidden, originRejected.message)
		return
	}
	if who.CheckRoutes(credential.RealtimeRoutes) != nil {
		writeDetail(w, http.StatusForbidden, routeRejected.message)
		return
	}
	if !who.AllowsModel(c.admission.model.Names()...) {
		writeDetail(w, http.StatusForbidden, modelRejected.message)
		return
	}
	s.admitViewer(w, r, c)
}

func (s *Server) admitViewer(w http.ResponseWriter, r *http.Request, c *connection) {
	watched := c.media().room
	token, err := s.config.WebRTC.Rooms.Token(watched, false)
	if err != nil {
		s.config.Logger.Error("cannot create a token", "session", c.session.ID(), "error", err)
		writeDetail(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{
		"livekit_url": baseOf(r) + room.Path + watched.Name(), "token": token, "room_name": watched.Name(),
		"session_id": c.session.ID(),
	})
}

// inRoom returns the room's open session, or nil.
func (s *Server) inRoom(name string) *connection {
	for _, g := range s.guests() {
		if c, opened := g.(*connection); opened {
			if l := c.media(); l != nil && l.room.Name() == name && c.life.Err() == nil {
				return c
			}
		}
	}
	return nil
}

// serveRoom serves a room's signaling, or forwards the request to the room's instance.
func (s *Server) serveRoom(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		writeDetail(w, http.StatusServiceUnavailable, serverStopping.message)
		return
	}
	defer s.handlers.Done()
	rooms := s.config.WebRTC.Rooms
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, room.Path), "/")
	if r.Method == http.MethodGet && s.forward(w, r, name, func() { rooms.Gone(w, r) }) {
		return
	}
	rooms.ServeHTTP(w, r)
}

// writeDetail responds in the format of the media service's errors.
func writeDetail(w http.ResponseWriter, status int, detail string) {
	writeJSON(w, status, map[string]string{"detail": detail})
}
