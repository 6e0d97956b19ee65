package realtime

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/platform/httpserver"
)

// rejection explains why a connection does not get a session (docs/contract/realtime.md#rejections).
type rejection struct {
	code websocket.StatusCode
	// reason is sent in the close frame. message is sent in the error before it.
	reason, message string
}

func (r rejection) Error() string { return r.message }
func rejected(code websocket.StatusCode, reason string) rejection {
	return rejection{code, reason, reason}
}

var (
	invalidKey      = rejected(websocket.StatusPolicyViolation, "Invalid API key")
	modelRejected   = rejected(websocket.StatusPolicyViolation, "Model not allowed")
	routeRejected   = rejected(websocket.StatusPolicyViolation, "Route not allowed")
	originRejected  = rejected(websocket.StatusPolicyViolation, "Origin not allowed")
	limitReached    = rejected(websocket.StatusTryAgainLater, "Concurrent session limit reached.")
	overBudget      = rejected(websocket.StatusPolicyViolation, "A budget is used up.")
	tooManyFailures = rejected(websocket.StatusTryAgainLater, "There were too many failed attempts from this address.")

	cannotOpen     = rejected(websocket.StatusTryAgainLater, "No session can be opened now. Try again.")
	failedToOpen   = rejected(websocket.StatusInternalError, "Internal error")
	noLiveKit      = rejected(websocket.StatusPolicyViolation, "LiveKit transport not allowed on this server")
	serverStopping = rejected(websocket.StatusGoingAway, "The server is stopping.")
)

type admission struct {
	who   credential.Principal
	model *catalog.Model
	// base is the server's WebSocket address as seen by the client.
	base string
	// queue says whether to wait for a session: "true", "false", or anything else if the client decides later.
	queue string
	// joins means that the client will join a room, and so expects no session_started.
	joins bool
	// notice tells the client which parameters have no effect. It is part of the first successful acknowledgment.
	notice string
}

func (s *Server) admit(ctx context.Context, r *http.Request) (admission, error) {
	secret := r.Header.Get("x-api-key")
	if secret == "" {
		secret = httpserver.Parameter(r, "api_key")
	}
	who, err := s.config.Authenticator.Authenticate(ctx, secret)
	if fault.Is(err, fault.Unauthorized) {
		return admission{}, invalidKey
	}
	if fault.Is(err, fault.Limited) {
		return admission{}, tooManyFailures
	}
	if err != nil {
		// The store is unavailable, so the client should retry.
		s.config.Logger.Error("cannot authenticate a session", "error", err)
		return admission{}, cannotOpen
	}
	if who.CheckRoutes(credential.RealtimeRoutes) != nil {
		return admission{who: who}, routeRejected
	}
	m, ok := s.config.Catalog.Find(httpserver.Parameter(r, "model"))
	if !ok || !m.Realtime || !who.AllowsModel(m.Names()...) {
		return admission{who: who}, modelRejected
	}
	origin := r.Header.Get("Origin")
	if !who.Scope().AllowsOrigin(origin) || origin != "" && !s.config.Origins.Allows(origin) {
		return admission{who: who}, originRejected
	}
	var notes []string
	if httpserver.Parameter(r, "speed") == "fast" {
		notes = append(notes, "speed=fast has no effect: the engine has one speed.")
	}
	if httpserver.Parameter(r, "resolution") == "1080p" {
		notes = append(notes, "resolution=1080p has no effect: frames have the engine's size.")
	}
	return admission{
		who: who, model: m, base: baseOf(r), queue: httpserver.Parameter(r, "queue"),
		joins: httpserver.Parameter(r, "livekit_early_room_info") == "true", notice: strings.Join(notes, " "),
	}, nil
}

// openOrWait takes a slot. If all are taken and the client agrees, the client waits in the queue, and the lobby
// keeps its messages. waited is nil if the client did not wait.
func (s *Server) openOrWait(ctx context.Context, accepted *socket, admitted admission) (
	opened *session.Session, waited *lobby, err error,
) {
	opened, err = s.openSession(ctx, admitted.who)
	waits := admitted.queue == "true"
	// Clients that use rooms ask to wait in their first message.
	mayWait := admitted.queue != "false" && s.config.WebRTC != nil
	if err == nil || !errors.Is(err, limitReached) || !waits && !mayWait {
		return opened, nil, err
	}
	l := s.newLobby(ctx, accepted, admitted)
	if !waits && !l.joins() {
		if l.life.Err() != nil {
			err = context.Cause(l.life)
		}
	} else {
		opened, err = l.wait()
	}
	if err != nil {
		l.drop()
		return nil, nil, err
	}
	l.end()
	return opened, l, nil
}

func (s *Server) openSession(ctx context.Context, who credential.Principal) (*session.Session, error) {
	opened, err := s.config.Sessions.Open(ctx, who.Account(), who.Tier.RealtimeSessions)
	switch {
	case err == nil:
		return opened, nil
	case fault.Is(err, fault.Limited):
		return nil, limitReached
	case !fault.Is(err, fault.Unavailable):
		s.config.Logger.Error("cannot open a session", "account", who.Account(), "error", err)
	}
	return nil, cannotOpen
}
