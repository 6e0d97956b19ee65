// Package realtime serves realtime sessions (docs/contract/realtime.md):
// WebSocket connections on which a client sends camera frames and receives them
// edited, by a prompt and an image that it may change at any time.
//
// A session begins when its connection is authenticated and has a slot of its
// account (package session), and ends with the connection. What the server
// reads and keeps for a session is bounded: one waiting frame, one frame that
// is being edited, a few messages.
package realtime

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

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

// Authenticator returns the holder of a key or a client token.
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

// Usage collects what sessions have used, as a usage.Writer does.
type Usage interface {
	Record(ctx context.Context, record usage.Record) error
}

// Enhancer expands prompts.
type Enhancer interface {
	// Enhance returns a more detailed prompt, of 1 to maxLength code points.
	Enhance(ctx context.Context, prompt string, maxLength int) (string, error)
}

// Config is what a [Server] needs.
type Config struct {
	Catalog       *catalog.Catalog
	Authenticator Authenticator
	Keys          Keys
	Sessions      *session.Instance
	// Files and Blobs hold the images that a message may refer to.
	Files Files
	Blobs Blobs
	// Usage receives the seconds of sessions. It must work until Run returns.
	Usage Usage
	// Budgets is what sessions draw from; nil if there are none. It must work until Run
	// returns.
	Budgets Budgets
	Engine  engine.LiveEngine
	// Pictures decodes reference images; if it is nil, they are refused.
	Pictures Pictures
	// Enhancer expands prompts; nil expands none.
	Enhancer Enhancer
	// WebRTC is the other transport; if it is nil, there is none.
	WebRTC *WebRTC
	// Origins are those whose pages may open sessions.
	Origins httpserver.Origins
	// Edits is how many frames are edited at once; 0 means all of the scheduler's
	// processors but one (httpserver.SpareProcessor).
	Edits int
	// TextMemory is how many bytes the text messages over 64 KiB of one account may
	// have together until they are handled; 0 means three of the longest. All
	// accounts' may have three times as many.
	TextMemory int64
	// Times are the time limits of a connection; those that are 0 are taken
	// from DefaultTimes.
	Times Times
	// Now is the clock of credentials, budgets and idle clients. A session lasts as long as
	// the machine's clock says.
	Now    func() time.Time
	Logger *slog.Logger
}

// Times are the time limits of a connection.
type Times struct {
	// Ping is how often a client is pinged, Pong how long it may take to
	// answer.
	Ping, Pong time.Duration
	// Idle is how long a session may go on without a message from the client.
	Idle time.Duration
	// Write is how long a client may take to read one message.
	Write time.Duration
	// Close is how long a client may take to read the last message, and then to
	// answer the close. When a session is lost, its client must be gone before
	// others take its slot: twice Close is less than the time between
	// session.FenceAfter and session.TakeAfter.
	Close time.Duration
	// Revocation is how often the keys of open sessions are checked, with one
	// read of the records for every key.
	Revocation time.Duration
	// Usage is how often the usage of open sessions is reported; a crash loses
	// no more than this.
	Usage time.Duration
	// Image is how long reading and setting an image may take, Decode how long its
	// decoding may: a harmless one of the largest size takes about a second.
	Image, Decode time.Duration
	// Drain is how long the sessions may take to end when the server stops.
	Drain time.Duration
	// Join is how long a client that finds no session free may take to join the line.
	Join time.Duration
}

// DefaultTimes returns the time limits that apply unless others are configured.
func DefaultTimes() Times {
	return Times{
		Ping: 20 * time.Second, Pong: 10 * time.Second, Idle: 2 * time.Minute, Write: 15 * time.Second,
		Close: 3 * time.Second, Revocation: 20 * time.Second, Usage: time.Minute,
		Image: 10 * time.Second, Decode: 4 * time.Second, Drain: 8 * time.Second, Join: 2 * time.Second,
	}
}

func (t Times) withDefaults() Times {
	d := DefaultTimes()
	for _, limit := range []struct{ set, standard *time.Duration }{
		{&t.Ping, &d.Ping}, {&t.Pong, &d.Pong}, {&t.Idle, &d.Idle}, {&t.Write, &d.Write}, {&t.Close, &d.Close},
		{&t.Revocation, &d.Revocation}, {&t.Usage, &d.Usage},
		{&t.Image, &d.Image}, {&t.Decode, &d.Decode}, {&t.Drain, &d.Drain}, {&t.Join, &d.Join},
	} {
		if *limit.set == 0 {
			*limit.set = *limit.standard
		}
	}
	return t
}

// Server serves sessions. It is an http.Handler for the paths that have a Pattern; Run does
// the work behind the connections.
type Server struct {
	config Config
	// edits limits how many frames are edited at once. Accounts take turns, however many
	// sessions each has.
	edits *ratelimit.Turns
	// changes limits how many prompts and images are prepared at once: half as
	// many as edits, so that a flood of prompts leaves processors to frames.
	changes *ratelimit.Turns
	// decodes limits how many reference images are decoded at once. Accounts take turns.
	decodes *ratelimit.Turns
	// texts limits the memory of long text messages.
	texts *texts
	meter *meter

	// crowd counts connections and sessions.
	crowd ratelimit.Open
	// peers are the other instances. Requests that are passed on to them end with passing.
	peers      *peers
	passing    context.Context
	endPassing context.CancelFunc

	mu       sync.Mutex
	open     map[guest]struct{}
	stopping bool
	// handlers counts the connections that are being served, with or without a
	// session.
	handlers sync.WaitGroup
}

var _ http.Handler = (*Server)(nil)

// New returns a server.
func New(c Config) *Server {
	c.Times = c.Times.withDefaults()
	if c.Edits == 0 {
		c.Edits = max(1, runtime.GOMAXPROCS(0)-1)
	}
	passing, endPassing := context.WithCancel(context.Background())
	return &Server{
		peers: newPeers(c), passing: passing, endPassing: endPassing,
		config: c, edits: ratelimit.NewTurns(c.Edits, 0), changes: ratelimit.NewTurns(max(c.Edits/2, 1), 0),
		decodes: ratelimit.NewTurns(imagesAtOnce, 1), texts: newTexts(c.TextMemory), meter: newMeter(c),
		open: map[guest]struct{}{},
	}
}

// Run keeps the instance's lease, ends the sessions of revoked keys and records
// usage, until the context ends. Then it refuses new sessions, tells the open
// ones that they end, closes them within Times.Drain and frees all slots.
func (s *Server) Run(ctx context.Context) {
	// Sessions need the lease until the last one has ended.
	lease, end := context.WithCancel(context.WithoutCancel(ctx))
	var holding, watching sync.WaitGroup
	holding.Go(func() { s.config.Sessions.Run(lease) })
	watching.Go(func() { s.watchKeys(ctx) })
	watching.Go(func() { s.meter.run(ctx) })
	<-ctx.Done()
	s.drain()
	watching.Wait()
	end()
	holding.Wait()
}

// begin reports whether a connection may be served; the caller then calls
// handlers.Done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.handlers.Add(1)
	}
	return !s.stopping
}

// guest is a client with a session, or one that waits for it.
type guest interface {
	key() credential.Hash
	// revoke ends what the guest has because the key was revoked, leaves because the
	// server stops. hangUp ends the connection without a word.
	revoke()
	leaves()
	hangUp()
}

// addGuest registers a guest, so that the server can end it. It reports false when the
// server stops, which the guest then has to do by itself.
func (s *Server) addGuest(g guest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[g] = struct{}{}
	return !s.stopping
}

func (s *Server) removeGuest(g guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, g)
}

// guests returns all guests.
func (s *Server) guests() []guest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

// drain ends all sessions and waits, and waits for their connections.
func (s *Server) drain() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.endPassing()
	for _, g := range s.guests() {
		g.leaves()
	}
	gone := make(chan struct{})
	go func() {
		s.handlers.Wait()
		close(gone)
	}()
	timer := time.NewTimer(s.config.Times.Drain)
	defer timer.Stop()
	select {
	case <-gone:
		return
	case <-timer.C:
	}
	for _, g := range s.guests() {
		g.hangUp()
	}
	<-gone
}
