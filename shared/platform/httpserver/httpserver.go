// Package httpserver adds to HTTP servers request ids, the access log, recovery from panics, time
// limits, complete responses to clients that are still sending, and an orderly shutdown.
package httpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	api "go.opentelemetry.io/otel/trace"
)

const (
	headerTime = 10 * time.Second
	// An idle connection is kept open this long for its next request.
	idleTime       = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// Cut-off handlers may respond within partingTime, and must return within cutTime after that.
	partingTime = time.Second
	cutTime     = 5 * time.Second
)

// ErrStopping is the cause if Shutdown ended a context. The client can still get a response.
var ErrStopping = errors.New("httpserver: the server is stopping")

// Handler and Logger are required. Zero values of other fields select the defaults.
type Config struct {
	Handler http.Handler
	Logger  *slog.Logger
	// QuietReads logs successful reads at the debug level, for people who watch the log.
	QuietReads bool
	Tracer     api.Tracer
	Observer   Observer
	// OnPanic responds with the service's error after a panic. By default the body is empty.
	OnPanic http.HandlerFunc
	// By default NewRequestID returns 26 random letters and digits.
	NewRequestID func() string
	// Stall limits the time that a peer may take for the next bytes of a response: 60 s by
	// default. An entire response has no limit.
	Stall time.Duration
	// Slowest is a body's minimum speed in bytes per second, 10 KiB by default. Grace is how far a
	// sender may fall behind that: 30 s by default, and never more than Stall.
	Slowest int64
	Grace   time.Duration
	// Longest limits a body's time: 1 hour by default, or longer if needed at 1 Mbit/s.
	Longest time.Duration
	// DrainBytes and DrainTime limit how much of a request is read after an early response, and
	// for how long: 1 GiB and 30 s by default.
	DrainBytes int64
	DrainTime  time.Duration
}

func (c Config) withDefaults() Config {
	if c.OnPanic == nil {
		c.OnPanic = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	}
	if c.NewRequestID == nil {
		c.NewRequestID = rand.Text
	}
	if c.Stall == 0 {
		c.Stall = time.Minute
	}
	if c.Slowest == 0 {
		c.Slowest = 10 << 10
	}
	if c.Grace == 0 {
		c.Grace = 30 * time.Second
	}
	if c.Longest == 0 {
		c.Longest = time.Hour
	}
	if c.DrainBytes == 0 {
		c.DrainBytes = 1 << 30
	}
	if c.DrainTime == 0 {
		c.DrainTime = 30 * time.Second
	}
	return c
}

type Server struct {
	http http.Server
	cut  context.CancelCauseFunc
	// newRequestID is for responses that no handler writes.
	newRequestID func() string
	active       active
	logger       *slog.Logger
}

func New(c Config) *Server {
	c = c.withDefaults()
	base, cut := context.WithCancelCause(context.Background())
	s := &Server{cut: cut, newRequestID: c.NewRequestID, logger: c.Logger, active: active{none: make(chan struct{})}}
	handler := Handler(c)
	s.http = http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.active.begin() {
				panic(http.ErrAbortHandler)
			}
			defer s.active.end()
			beginAnswer(r)
			handler.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: headerTime,
		// This limits only requests that net/http rejects before Handler, such as an unknown
		// expectation, and then reads to their end. Handler removes it and sets a deadline for
		// every step instead, because this timeout and a write timeout would limit entire
		// transfers.
		ReadTimeout:                  c.Stall,
		IdleTimeout:                  idleTime,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
		BaseContext:                  func(net.Listener) context.Context { return base },
		ConnContext:                  withConn,
		ConnState:                    followState,
	}
	return s
}

// Serve accepts connections until Shutdown, and then returns nil. It closes the listener. A
// request with an ambiguous end gets 400, and its connection is closed.
func (s *Server) Serve(l net.Listener) error {
	watched := watchedListener{l, s.newRequestID, newConnections(s.logger)}
	if err := s.http.Serve(watched); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting connections and waits for the requests in progress. If the context
// ends first, the requests are cut off: their contexts end with ErrStopping as the cause,
// handlers have a second to respond, and then their connections are closed. Shutdown returns the
// context's error when the handlers have returned, or after at most 6 s.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.cut(ErrStopping)
	err := s.http.Shutdown(ctx)
	if err == nil {
		return nil
	}
	s.cut(ErrStopping)
	parting, end := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer end()
	_ = s.http.Shutdown(parting) // the remaining connections are closed next
	s.http.Close()
	timer := time.NewTimer(cutTime)
	defer timer.Stop()
	select {
	case <-s.active.stop():
	case <-timer.C:
	}
	return err
}

type active struct {
	mu      sync.Mutex
	count   int
	stopped bool
	none    chan struct{}
}

// begin reports whether a handler may run. If it may, the caller must call end.
func (a *active) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return false
	}
	a.count++
	return true
}

func (a *active) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count--
	if a.stopped && a.count == 0 {
		close(a.none)
	}
}

// stop prevents new handlers, and returns a channel that is closed when none is running.
func (a *active) stop() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped {
		a.stopped = true
		if a.count == 0 {
			close(a.none)
		}
	}
	return a.none
}
