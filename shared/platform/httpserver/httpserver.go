// Package httpserver adds the following to HTTP servers: request ids, an access log, panic recovery, time limits,
// complete responses to clients that are still sending, and graceful shutdown.
package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	api "go.opentelemetry.io/otel/trace"
)

const (
	headerTime     = 10 * time.Second
	maxHeaderBytes = 16 << 10
	// Handlers that are cut off may still respond within partingTime, and must return within cutTime after that.
	partingTime = time.Second
	cutTime     = 5 * time.Second
)

// IdleTime is how long an idle connection stays open for the next request. It is longer than the load balancers' idle
// timeouts, because a balancer that reuses a connection while the server closes it responds with 502.
const IdleTime = 310 * time.Second

// ErrStopping is the cause of contexts that Shutdown ends. The client can still get a response.
var ErrStopping = errors.New("httpserver: the server is stopping")

// Handler and Logger are required. The zero values of other fields select defaults.
type Config struct {
	Handler http.Handler
	Logger  *slog.Logger
	// Value, if set, returns additional values of the contexts of requests.
	Value func(r *http.Request, key any) any
	// QuietReads logs successful reads at the debug level, which makes the log easier to follow.
	QuietReads bool
	Tracer     api.Tracer
	Observer   Observer
	// OnPanic responds with the service's error after a panic. By default the body is empty.
	OnPanic http.HandlerFunc
	// NewRequestID returns 26 random letters and digits by default.
	NewRequestID func() string
	// Stall limits how long a peer may take to read the next bytes of a response: 60 s by default.
	// An entire response has no time limit.
	Stall time.Duration
	// Slowest is a body's minimum speed in bytes per second: 10 KiB by default. Grace is how far a sender may fall
	// behind that speed: 30 s by default, and never more than Stall.
	Slowest int64
	Grace   time.Duration
	// Longest limits how long a body may take: 1 hour by default. Bodies that need longer at 1 Mbit/s get more time.
	Longest time.Duration
	// DrainBytes and DrainTime limit how much of a request is read after an early response, and for
	// how long. The defaults are 1 GiB and 30 s.
	DrainBytes int64
	DrainTime  time.Duration
	// Loop serves plain requests without net/http, which takes less time.
	Loop bool
	// compresses enables gzip. It is set only for servers, because functions would have to encode compressed
	// responses again.
	compresses bool
}

func (c Config) withDefaults() Config {
	if c.OnPanic == nil {
		c.OnPanic = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	}
	if c.NewRequestID == nil {
		c.NewRequestID = newRequestID
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
	config Config
	http   http.Server
	cut    context.CancelCauseFunc
	// newRequestID is used for responses that no handler writes.
	newRequestID func() string
	active       active
	logger       *slog.Logger
	loops        *loops
}

func New(c Config) *Server {
	c = c.withDefaults()
	c.compresses = true
	base, cut := context.WithCancelCause(context.Background())
	s := &Server{cut: cut, newRequestID: c.NewRequestID, logger: c.Logger, active: active{none: make(chan struct{})}}
	s.config, s.loops = c, newLoops(s, base)
	// HTTP/2 stays off: one connection would carry many requests, which the limits of open connections do not count.
	s.http = http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handle(r.Context(), w, r) }),
		ReadHeaderTimeout: headerTime,
		// This applies only to requests that net/http itself rejects before calling Handler, for example because of
		// an unknown expectation. net/http then reads such a request to its end. For other requests, Handler removes
		// this timeout and sets a deadline for each step, because a read or write timeout would limit entire
		// transfers.
		ReadTimeout:                  c.Stall,
		IdleTimeout:                  IdleTime,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
		BaseContext:                  func(net.Listener) context.Context { return base },
		ConnContext:                  withConn,
		ConnState:                    followState,
	}
	return s
}

func (s *Server) handle(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if !s.active.begin() {
		panic(http.ErrAbortHandler)
	}
	defer s.active.end()
	beginAnswer(ctx)
	serve(ctx, &s.config, w, r)
}

// Serve accepts connections until Shutdown, and then returns nil. It closes the listener. If the
// end of a request is ambiguous, the response is 400 and the connection is closed.
func (s *Server) Serve(l net.Listener) error {
	var watched net.Listener = watchedListener{l, s.newRequestID, newConnections(s.logger)}
	if s.config.Loop {
		watched = s.loops.serve(watched)
	}
	if err := s.http.Serve(watched); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting connections and waits for requests in progress. If the context ends first, the requests
// are cut off. Their contexts end with ErrStopping as the cause, handlers have a second to respond, and then the
// connections are closed. Shutdown returns the context's error once all handlers have returned, or after at most 6 s.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.cut(ErrStopping)
	err := s.stop(ctx, false)
	if err == nil {
		return nil
	}
	s.cut(ErrStopping)
	parting, end := context.WithTimeout(context.WithoutCancel(ctx), partingTime)
	defer end()
	_ = s.stop(parting, true) // the remaining connections are closed next
	s.http.Close()
	s.loops.each(func(c *loopConn) { c.conn.tcp.Close() })
	timer := time.NewTimer(cutTime)
	defer timer.Stop()
	select {
	case <-s.active.stop():
	case <-timer.C:
	}
	return err
}

func (s *Server) stop(ctx context.Context, cut bool) error {
	s.loops.stop(cut)
	if err := s.http.Shutdown(ctx); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		s.loops.serving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type active struct {
	mu      sync.Mutex
	count   int
	stopped bool
	none    chan struct{}
}

// begin reports whether a handler may run. If so, the caller must call end afterwards.
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

// stop prevents new handlers from running, and returns a channel that is closed once none is running.
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
