package realtime

import (
	"context"
	"net/http"
	"sync"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/ratelimit"
)

const (
	// maxArrivals is the maximum number of connections that are being authenticated, and also of
	// connections that are being rejected. arrivalsByCaller is the maximum of both per address. None
	// of these connections has a valid key yet.
	maxArrivals, arrivalsByCaller = 256, 32
	maxSessions                   = 1000
)

// arrive counts a connection without a session. leave ends the count and may be called more than once.
func (s *Server) arrive(r *http.Request) (leave func(), ok bool) {
	if leave, ok = s.crowd.Enter(strangers("arrivals", r)...); !ok {
		return nil, false
	}
	return sync.OnceFunc(leave), true
}

// strangers returns the limits for connections without a session in the given state.
func strangers(state string, r *http.Request) []ratelimit.OpenLimit {
	bounds := []ratelimit.OpenLimit{{Name: state, Most: maxArrivals}}
	if caller := credential.Caller(r.Context()); caller != "" {
		bounds = append(bounds, ratelimit.OpenLimit{Name: state + "/" + caller, Most: arrivalsByCaller})
	}
	return bounds
}

// turnAway rejects a connection that no longer counts as an arrival. Slow rejections have separate
// limits, so that they do not block arrivals. If a limit is exceeded, the connection is closed
// without a message.
func (s *Server) turnAway(ctx context.Context, accepted *socket, r *http.Request, no rejection) {
	leave, ok := s.crowd.Enter(strangers("refused", r)...)
	if !ok {
		_ = accepted.CloseNow()
		return
	}
	defer leave()
	accepted.reject(ctx, no)
}

// enter counts a key's session, in addition to the account's slot. Its error is a rejection.
func (s *Server) enter(who credential.Principal) (leave func(), err error) {
	leave, ok := s.crowd.Enter(
		ratelimit.OpenLimit{Name: "sessions", Most: maxSessions},
		ratelimit.OpenLimit{Name: "key/" + who.Key.ID, Most: who.Tier.RealtimeSessionsPerKey},
	)
	if !ok {
		return nil, limitReached
	}
	return leave, nil
}

// answerPings returns a handler that answers pings, and disconnects a client that sends too many.
func (h *hijacker) answerPings() func(context.Context, []byte) bool {
	pings := newPings()
	return func(context.Context, []byte) bool {
		if pings.Allow() {
			return true
		}
		h.network.Close()
		return false
	}
}
