package realtime

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/session"
	"cutroom/shared/platform/httpserver"
)

const (
	// maxArrivals limits the connections that are being authenticated. A separate limit of the same size applies to
	// connections that are being rejected. arrivalsByCaller sets both limits for a single address. Delays of failed
	// authentications can take only half of the arrivals.
	maxArrivals, arrivalsByCaller = 2 * ratelimit.MaxWaiting, 32
	maxSessions                   = 1000
)

// arrive counts a connection that does not have a session yet. leave may be called more than once.
func (s *Server) arrive(r *http.Request) (leave func(), ok bool) {
	if leave, ok = s.crowd.Enter(strangers("arrivals", r)...); !ok {
		return nil, false
	}
	return sync.OnceFunc(leave), true
}

func strangers(state string, r *http.Request) []ratelimit.OpenLimit {
	bounds := []ratelimit.OpenLimit{{Name: state, Most: maxArrivals}}
	if caller := credential.Caller(r.Context()); caller != "" {
		bounds = append(bounds, ratelimit.OpenLimit{Name: state + "/" + caller, Most: arrivalsByCaller})
	}
	return bounds
}

// turnAway rejects a connection. Rejections have separate limits, so that slow rejections do not
// block arrivals. Above a limit, the connection is closed without a message.
func (s *Server) turnAway(ctx context.Context, accepted *socket, r *http.Request, no rejection) {
	leave, ok := s.crowd.Enter(strangers("refused", r)...)
	if !ok {
		_ = accepted.CloseNow()
		return
	}
	defer leave()
	accepted.reject(ctx, no)
}

// enter counts a session of a key, in addition to the account's slot. Connections that are about to wait count
// too, so that an account whose slots are taken cannot use up the places of others. The error is a rejection.
func (s *Server) enter(who credential.Principal) (leave func(), err error) {
	leave, ok := s.crowd.Enter(
		ratelimit.OpenLimit{Name: "sessions", Most: maxSessions},
		ratelimit.OpenLimit{Name: "key/" + who.Key.ID, Most: who.Tier.RealtimeSessionsPerKey},
		ratelimit.OpenLimit{
			Name: "account/" + who.Account(),
			Most: sessionsOf(who.Tier) + max(cmp.Or(who.Tier.RealtimeQueue, session.LongestQueue), credential.DefaultQueue) + arrivalsByCaller,
		},
	)
	if !ok {
		return nil, limitReached
	}
	return leave, nil
}

// sessionsOf returns the number of sessions that an account may have on this server.
func sessionsOf(tier credential.Tier) int { return cmp.Or(tier.RealtimeSessions, maxSessions) }

// limitPings returns a function that is called for each ping. It closes the connection after too many.
func limitPings(upgrade *httpserver.OverheadWriter) func(context.Context, []byte) bool {
	pings := newPings()
	return func(context.Context, []byte) bool {
		if pings.Allow() {
			return true
		}
		upgrade.Conn.Close()
		return false
	}
}
