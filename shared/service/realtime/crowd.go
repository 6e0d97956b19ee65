package realtime

import (
	"context"
	"net/http"
	"sync"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/ratelimit"
)

const (
	// maxArrivals is how many connections may be without a session at once,
	// while they are being authenticated or refused, and arrivalsByCaller how
	// many of them may come from one address: none of them has presented a
	// valid key yet.
	maxArrivals, arrivalsByCaller = 256, 32
	// maxSessions is how many sessions one server has open, of all accounts.
	maxSessions = 1000
)

// arrive counts a connection that has no session yet. The returned leave undoes
// that and may be called more than once.
func (s *Server) arrive(r *http.Request) (leave func(), ok bool) {
	bounds := []ratelimit.Bound{{Name: "arrivals", Most: maxArrivals}}
	if caller := credential.Caller(r.Context()); caller != "" {
		bounds = append(bounds, ratelimit.Bound{Name: "arrivals/" + caller, Most: arrivalsByCaller})
	}
	if leave, ok = s.crowd.Enter(bounds...); !ok {
		return nil, false
	}
	return sync.OnceFunc(leave), true
}

// enter counts a session of a key, beside the slot of its account.
//
// Errors: a refusal.
func (s *Server) enter(who credential.Principal) (leave func(), err error) {
	leave, ok := s.crowd.Enter(
		ratelimit.Bound{Name: "sessions", Most: maxSessions},
		ratelimit.Bound{Name: "key/" + who.Key.ID, Most: who.Tier.RealtimeSessionsPerKey},
	)
	if !ok {
		return nil, limitReached
	}
	return leave, nil
}

// answerPings returns a handler that answers the client's pings, and cuts off a
// client that sends too many.
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
