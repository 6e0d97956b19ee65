package realtime

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/engine"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/platform/panics"
	"cutroom/shared/service/realtime/room"
)

func Paths() []string { return []string{Path, room.Path, watchPath} }

// Pattern returns the pattern that matches a path, or "" if the path is not served here.
func (s *Server) Pattern(path string) string {
	switch {
	case path == Path:
		return Path
	case s.config.WebRTC == nil:
		return ""
	case strings.HasPrefix(path, room.Path):
		return room.Path + "{room}/"
	case strings.HasPrefix(path, watchPath):
		return watchPath + "{room}"
	}
	return ""
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch s.Pattern(r.URL.Path) {
	case Path:
		s.serveSession(w, r)
	case watchPath + "{room}":
		s.watch(w, r)
	case room.Path + "{room}/":
		s.serveRoom(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) {
	httpserver.TrimUpgrade(r.Header)
	if status, detail := handshake(r); status != 0 {
		s.writePlain(w, r, status, detail)
		return
	}
	leave, ok := s.arrive(r)
	if !ok {
		w.Header().Set("Retry-After", "2")
		s.writePlain(w, r, http.StatusServiceUnavailable, "Too many connections are being opened. Try again.")
		return
	}
	defer leave()
	accepted := accept(w, r, s.config.Times)
	if accepted == nil {
		return
	}
	// The request's context does not end when the connection does.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer accepted.reading.Wait()
	defer cancel()
	if !s.begin() {
		accepted.reject(ctx, serverStopping)
		return
	}
	defer s.handlers.Done()
	var no rejection
	if !panics.Run(s.config.Logger, "session", func() { errors.As(s.serve(ctx, accepted, r, leave), &no) }) {
		no = failedToOpen
	}
	if no != (rejection{}) {
		leave()
		s.turnAway(ctx, accepted, r, no)
	}
	_ = accepted.CloseNow() // the client may have left while it was waiting
}

// serve serves a session. It calls the function arrived once the client has been admitted.
//
// Errors: a rejection; errLeft.
func (s *Server) serve(ctx context.Context, accepted *socket, r *http.Request, arrived func()) error {
	admitted, err := s.admit(ctx, r)
	if who := admitted.who; who.Account() != "" {
		httpserver.SetAccount(r.Context(), who.Account())
	}
	if err != nil {
		return err
	}
	leave, err := s.enter(admitted.who)
	if err != nil {
		return err
	}
	defer leave()
	arrived()
	opened, waited, err := s.openOrWait(ctx, accepted, admitted)
	if err != nil {
		return err
	}
	if waited != nil {
		defer waited.drop()
	}
	defer opened.Close(ctx)
	editor, err := s.openEditor(ctx, opened, admitted.model)
	if err != nil {
		return err
	}
	defer editor.Close()
	reserved, err := s.reserve(ctx, admitted)
	if err != nil {
		return err
	}
	newConnection(ctx, s, accepted, reserved, opened, editor, waited).serve()
	return nil
}

// openEditor starts an engine session. The error is a rejection.
func (s *Server) openEditor(
	ctx context.Context, opened *session.Session, model *catalog.Model,
) (engine.LiveEditor, error) {
	editor, err := s.config.Engine.Open(ctx, model)
	log := s.config.Logger.With("session", opened.ID(), "model", model.ID)
	switch {
	case err == nil:
		return editor, nil
	case fault.Is(err, fault.Unavailable):
		log.Warn("the engine has no free session", "error", err)
		return nil, cannotOpen
	}
	log.Error("cannot open an engine session", "error", err)
	return nil, failedToOpen
}
