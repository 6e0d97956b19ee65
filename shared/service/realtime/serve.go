package realtime

import (
	"context"
	"errors"
	"net/http"

	"cutroom/shared/platform/contain"
	"cutroom/shared/platform/httpserver"
)

// ServeHTTP serves one connection until it ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status, detail := handshake(r); status != 0 {
		s.answerPlain(w, r, status, detail)
		return
	}
	leave, ok := s.arrive(r)
	if !ok {
		w.Header().Set("Retry-After", "2")
		s.answerPlain(w, r, http.StatusServiceUnavailable, "Too many connections are being opened. Try again.")
		return
	}
	defer leave()
	accepted := accept(w, r, s.config.Times)
	if accepted == nil {
		return
	}
	// The request's context does not end with the connection from here on.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	if !s.begin() {
		accepted.refuse(ctx, serverStopping)
		return
	}
	defer s.handlers.Done()
	var no refusal
	if !contain.Run(s.config.Logger, "session", func() { errors.As(s.serve(ctx, accepted, r, leave), &no) }) {
		no = failedToOpen
	}
	if no != (refusal{}) {
		leave()
		s.turnAway(ctx, accepted, r, no)
	}
}

// serve serves a session on the connection. It calls arrived once there is a
// session.
//
// Errors: a refusal, when there is no session.
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
	opened, err := s.openSession(ctx, admitted.who)
	if err != nil {
		return err
	}
	defer opened.Close(ctx)
	editor, err := s.config.Engine.Open(ctx, admitted.model)
	if err != nil {
		s.config.Logger.Error(
			"the engine opened no session", "session", opened.ID(), "model", admitted.model.ID, "error", err,
		)
		return failedToOpen
	}
	defer editor.Close()
	arrived()
	newConnection(ctx, s, accepted, admitted, opened, editor).serve()
	return nil
}
