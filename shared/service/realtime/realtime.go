// Package realtime is the server of realtime sessions (docs/contract/realtime.md):
// WebSocket connections on which a client sends camera frames and gets them back
// edited, by a prompt and an image that it may change at any time.
//
// A session begins when its connection is authenticated and has a slot of its
// account (package session), and ends with the connection. What the server reads
// and holds for a session is bounded: one frame that waits, one that is being
// edited, a few messages.
package realtime

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/domain/session"
	"cutroom/shared/domain/usage"
	"cutroom/shared/engine"
	"cutroom/shared/platform/httpserver"
)

// Path is where sessions are opened.
const Path = "/v1/stream"

// Authenticator tells who holds a key or a client token.
type Authenticator interface {
	// Errors: fault.Unauthorized.
	Authenticate(ctx context.Context, secret string) (credential.Principal, error)
}

// Keys finds permanent keys, revoked or not.
type Keys interface {
	// Errors: fault.NotFound.
	FindKey(ctx context.Context, hash credential.Hash) (credential.Key, error)
}

// Files finds stored files.
type Files interface {
	// Errors: fault.NotFound.
	Get(ctx context.Context, account, id string) (file.File, error)
}

// Blobs reads stored bytes.
type Blobs interface {
	// Errors: fault.NotFound.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
}

// Usage takes what sessions have used, and gathers it: a usage.Writer.
type Usage interface {
	Record(ctx context.Context, record usage.Record) error
}

// Enhancer expands prompts.
type Enhancer interface {
	// Enhance gives a prompt that says more, of 1 to maxLength code points.
	Enhance(ctx context.Context, prompt string, maxLength int) (string, error)
}

// Config is what a [Server] is made of.
type Config struct {
	Catalog       *catalog.Catalog
	Authenticator Authenticator
	Keys          Keys
	Sessions      *session.Instance
	// Files and Blobs hold the images that a message may refer to.
	Files Files
	Blobs Blobs
	// Usage gets the seconds of sessions. It must work until Run returns.
	Usage  Usage
	Engine engine.LiveEngine
	// Pictures decodes reference images; nil takes none.
	Pictures Pictures
	// Enhancer expands prompts; nil expands none.
	Enhancer Enhancer
	// Origins are those whose pages may open sessions.
	Origins httpserver.Origins
	// Edits is how many frames are edited at once; 0 takes the number of
	// processors.
	Edits int
	// Times are the time limits of a connection; those that are 0 take
	// DefaultTimes.
	Times  Times
	Now    func() time.Time
	Logger *slog.Logger
}

// Times are the time limits of a connection.
type Times struct {
	// Ping is how often a client is asked for a sign of life, Pong how long it
	// may take to give one.
	Ping, Pong time.Duration
	// Idle is how long a session may go on without a message of the client.
	Idle time.Duration
	// Write is how long a client may take to take one message.
	Write time.Duration
	// Close is how long a client may take to take the last message, and then to
	// agree that the connection ends. A session that was lost is over for its
	// client before others take its slot: twice Close is less than what lies
	// between session.FenceAfter and session.TakeAfter.
	Close time.Duration
	// Revocation is how often the keys of open sessions are looked at: one read
	// of the records for every key.
	Revocation time.Duration
	// Usage is how often the use of open sessions is reported; a crash loses no
	// more.
	Usage time.Duration
	// Drain is how long the sessions may take to end when the server stops.
	Drain time.Duration
}

// DefaultTimes are the time limits where nothing else is set.
func DefaultTimes() Times {
	return Times{
		Ping: 20 * time.Second, Pong: 10 * time.Second, Idle: 2 * time.Minute, Write: 15 * time.Second,
		Close: 3 * time.Second, Revocation: 20 * time.Second, Usage: time.Minute, Drain: 8 * time.Second,
	}
}

func (t Times) withDefaults() Times {
	d := DefaultTimes()
	for _, limit := range []struct{ set, standard *time.Duration }{
		{&t.Ping, &d.Ping}, {&t.Pong, &d.Pong}, {&t.Idle, &d.Idle}, {&t.Write, &d.Write}, {&t.Close, &d.Close},
		{&t.Revocation, &d.Revocation}, {&t.Usage, &d.Usage}, {&t.Drain, &d.Drain},
	} {
		if *limit.set == 0 {
			*limit.set = *limit.standard
		}
	}
	return t
}

// Server serves sessions. It is an http.Handler for Path; Run does what stands
// behind the connections.
type Server struct {
	Config
	edits *semaphore.Weighted
	// changes admits what readies prompts and images: half as many as edits, so
	// that a flood of prompts leaves processors to frames.
	changes *semaphore.Weighted
	// decodes admits what decodes reference images. Each session has one at a time,
	// and they take turns.
	decodes *semaphore.Weighted
	meter   *meter

	// crowd counts connections and sessions.
	crowd ratelimit.Open

	mu       sync.Mutex
	open     map[*connection]struct{}
	stopping bool
	// handlers are the connections that are served, sessions or not.
	handlers sync.WaitGroup
}

var _ http.Handler = (*Server)(nil)

// New makes a server.
func New(c Config) *Server {
	c.Times = c.Times.withDefaults()
	if c.Edits == 0 {
		c.Edits = runtime.GOMAXPROCS(0)
	}
	return &Server{
		Config: c, edits: semaphore.NewWeighted(int64(c.Edits)), changes: semaphore.NewWeighted(int64(max(c.Edits/2, 1))),
		decodes: semaphore.NewWeighted(imagesAtOnce), meter: newMeter(c), open: map[*connection]struct{}{},
	}
}

// Run holds the instance's lease, ends the sessions of revoked keys and records
// usage, until the context ends. Then it refuses new sessions, tells the open
// ones and closes them, within Times.Drain, and frees all slots.
func (s *Server) Run(ctx context.Context) {
	// Sessions need the lease until the last one has ended.
	lease, end := context.WithCancel(context.WithoutCancel(ctx))
	var holding, watching sync.WaitGroup
	holding.Go(func() { s.Sessions.Run(lease) })
	watching.Go(func() { s.watchKeys(ctx) })
	watching.Go(func() { s.meter.run(ctx) })
	<-ctx.Done()
	s.drain()
	watching.Wait()
	end()
	holding.Wait()
}

// begin reports whether a connection may be served; it then calls the handlers'
// Done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.handlers.Add(1)
	}
	return !s.stopping
}

// add makes a session known, so that the server can end it.
func (s *Server) add(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
	if s.stopping {
		c.end(endedByStop)
	}
}

func (s *Server) remove(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// connections are the open sessions.
func (s *Server) connections() []*connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*connection, 0, len(s.open))
	for c := range s.open {
		all = append(all, c)
	}
	return all
}

// drain ends all sessions and waits for their connections.
func (s *Server) drain() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	for _, c := range s.connections() {
		c.end(endedByStop)
	}
	gone := make(chan struct{})
	go func() {
		s.handlers.Wait()
		close(gone)
	}()
	timer := time.NewTimer(s.Times.Drain)
	defer timer.Stop()
	select {
	case <-gone:
		return
	case <-timer.C:
	}
	for _, c := range s.connections() {
		c.cut()
	}
	<-gone
}
