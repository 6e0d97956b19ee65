package realtime

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/session"
	"cutroom/shared/service/realtime/room"
)

const (
	// forwardedHeader marks a request from another instance, so that the request is not forwarded again.
	forwardedHeader = "X-Cutroom-Passed-On"
	// maxForwarded limits the requests being forwarded at the same time. maxForwardedByCaller is
	// the limit per address.
	maxForwarded, maxForwardedByCaller = 1000, 200
	// An instance must accept a connection within peerDial and respond within peerHeader.
	peerDial, peerHeader = 3 * time.Second, 10 * time.Second
	// peerFresh is how long an instance's address is cached. maxKnown limits the size of the cache.
	peerFresh, maxKnown = 5 * time.Second, 1000
)

var errNoPeer = errors.New("realtime: no instance hosts the room")

// peers finds the instances that run rooms and forwards requests to them. A room's name contains
// its instance's epoch. Addresses come only from the store, so callers cannot choose them.
type peers struct {
	sessions  *session.Instance
	now       func() time.Time
	logger    *slog.Logger
	transport *http.Transport
	// lookups limits the rate of store reads, because no key is needed to name a room.
	lookups *rate.Limiter

	mu    sync.Mutex
	known map[string]peer // keyed by epoch
}

type peer struct {
	// address is empty if no instance has the epoch.
	address string
	until   time.Time
}

func newPeers(c Config) *peers {
	dialer := &net.Dialer{Timeout: peerDial}
	return &peers{
		sessions: c.Sessions, now: c.Now, logger: c.Logger, lookups: rate.NewLimiter(50, 200), known: map[string]peer{},
		transport: &http.Transport{
			DialContext: dialer.DialContext, ResponseHeaderTimeout: peerHeader, IdleConnTimeout: time.Minute,
			MaxIdleConnsPerHost: 4, DisableCompression: true,
		},
	}
}

// find returns the address of the room's instance. It returns "" if that is this instance or the name is invalid.
//
// Errors: errNoPeer; fault.Unavailable.
func (p *peers) find(ctx context.Context, name string) (address string, err error) {
	epoch := room.OwnerOf(name)
	if epoch == "" || !p.sessions.HasPeers() {
		return "", nil
	}
	now := p.now()
	p.mu.Lock()
	found, there := p.known[epoch]
	p.mu.Unlock()
	if !there || now.After(found.until) {
		if !p.lookups.Allow() {
			return "", fault.New(fault.Unavailable, "Too many requests for rooms. Try again.")
		}
		address, own, err := p.sessions.Find(ctx, epoch)
		if own {
			return "", nil
		}
		if err != nil && !fault.Is(err, fault.Conflict) {
			return "", err
		}
		found = peer{address, now.Add(peerFresh)}
		p.mu.Lock()
		if len(p.known) >= maxKnown {
			clear(p.known)
		}
		p.known[epoch] = found
		p.mu.Unlock()
	}
	if found.address == "" {
		return "", errNoPeer
	}
	if _, err := netip.ParseAddrPort(found.address); err != nil {
		return "", err
	}
	return found.address, nil
}

// forward sends a request to the room's instance and reports whether a response was sent. If no instance has the
// room, the callback gone sends the response.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, name string, gone func()) bool {
	if r.Header.Get(forwardedHeader) != "" || s.config.WebRTC.Rooms.Find(name) != nil {
		return false
	}
	address, err := s.peers.find(r.Context(), name)
	switch {
	case errors.Is(err, errNoPeer):
		gone()
		return true
	case err != nil:
		if !fault.Is(err, fault.Unavailable) {
			s.config.Logger.Error("cannot find the instance that hosts a room", "error", err)
		}
		cannotReach(w)
		return true
	case address == "":
		return false
	}
	bounds := []ratelimit.OpenLimit{{Name: "passed", Most: maxForwarded}}
	if caller := credential.Caller(r.Context()); caller != "" {
		bounds = append(bounds, ratelimit.OpenLimit{Name: "passed/" + caller, Most: maxForwardedByCaller})
	}
	leave, ok := s.crowd.Enter(bounds...)
	if !ok {
		cannotReach(w)
		return true
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	// Forwarded requests must end when the server stops.
	defer context.AfterFunc(s.forwarding, cancel)()
	s.peers.proxy(address, r.URL.RawQuery, w.Header()).ServeHTTP(w, withoutQuery(r.WithContext(ctx)))
	return true
}

func cannotReach(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeDetail(w, http.StatusServiceUnavailable, "The room is currently unreachable. Try again.")
}

// withoutQuery removes the query, which may be huge, so that the library does not parse it.
func withoutQuery(r *http.Request) *http.Request {
	at := *r.URL
	at.RawQuery = ""
	r.URL = &at
	return r
}

// proxy forwards a request (which may be an upgrade) with the query to an address. set is the header of the response
// so far. Fields that the instance's response also has are removed from it, so that no field is sent twice.
func (p *peers) proxy(address, query string, set http.Header) http.Handler {
	upgraded := false
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: address})
			r.Out.URL.RawQuery = query
			// Keep the caller's Host, because the instance's response contains the server's address as the caller
			// sees it.
			r.Out.Host = r.In.Host
			if strings.HasPrefix(baseOf(r.In), "wss:") {
				r.Out.Header.Set("X-Forwarded-Proto", "https")
			}
			r.Out.Header.Set(forwardedHeader, "1")
		},
		ModifyResponse: func(answer *http.Response) error {
			upgraded = answer.StatusCode == http.StatusSwitchingProtocols
			answer.Header.Del("X-Request-Id")
			for name := range answer.Header {
				set.Del(name)
			}
			return nil
		},
		Transport: p.transport, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if upgraded {
				return // one side has disconnected, so no response can be sent
			}
			if r.Context().Err() == nil {
				p.logger.Warn("cannot reach the instance that hosts a room", "address", address, "error", err)
			}
			cannotReach(w)
		},
	}
}
