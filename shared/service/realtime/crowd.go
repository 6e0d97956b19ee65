package realtime

import (
	"context"
	"net/http"
	"sync"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/ratelimit"
)

const (
	// maxArrivals is how many connections may be authenticated at once, and as many may
	// be refused at once; arrivalsByCaller is how many of either may come from one
	// address: none of them has presented a valid key yet.
	maxArrivals, arrivalsByCaller = 256, 32
	// maxSessions is how many sessions one server has open, of all accounts.
	maxSessions = 1000
)

// arrive counts a connection that has no session yet. The returned leave undoes
// that and may be called more than once.
func (s *Server) arrive(r *http.Request) (leave func(), ok bool) {
	if leave, ok = s.crowd.Enter(strangers("arrivals", r)...); !ok {
		return nil, false
	}
	return sync.OnceFunc(leave), true
}

// strangers are the bounds of connections that are in the same state without a session.
func strangers(state string, r *http.Request) []ratelimit.Bound {
	bounds := []ratelimit.Bound{{Name: state, Most: maxArrivals}}
	if caller := credential.Caller(r.Context()); caller != "" {
		bounds = append(bounds, ratelimit.Bound{Name: state + "/" + caller, Most: arrivalsByCaller})
	}
	return bounds
}

// turnAway refuses a connection that has left the arrivals. Those that take their time
// over their refusal are counted apart, so that they keep nobody from arriving; one
// beyond the bounds is closed without a word.
func (s *Server) turnAway(ctx context.Context, accepted *socket, r *http.Request, no refusal) {
	leave, ok := s.crowd.Enter(strangers("refused", r)...)
	if !ok {
		_ = accepted.CloseNow()
		return
	}
	defer leave()
	accepted.refuse(ctx, no)
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
