// Package realtime serves realtime sessions (docs/contract/realtime.md): WebSocket connections on
// which a client sends camera frames and receives edited ones.
//
// A session takes one of its account's slots (package session) and ends with the connection. For each session,
// the server holds at most one waiting frame, one that is being edited, and a few messages.
package realtime

import (
	"cmp"
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

const Path = "/v1/stream"

type Authenticator interface {
	// Errors: fault.Unauthorized.
	Authenticate(ctx context.Context, secret string) (credential.Principal, error)
}

type Keys interface {
	// Errors: fault.NotFound.
	FindKey(ctx context.Context, hash credential.Hash) (credential.Key, error)
}

type Files interface {
	// Errors: fault.NotFound.
	Get(ctx context.Context, account, id string) (file.File, error)
}

type Blobs interface {
	// Errors: fault.NotFound.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
}

// Usage collects sessions' usage, as usage.Writer does.
type Usage interface {
	Record(ctx context.Context, record usage.Record) error
}

type Enhancer interface {
	// Enhance returns a more detailed prompt of 1 to maxLength code points.
	Enhance(ctx context.Context, prompt string, maxLength int) (string, error)
}

type Config struct {
	Catalog       *catalog.Catalog
	Authenticator Authenticator
	Keys          Keys
	Sessions      *session.Instance
	// Files and Blobs are used to read the images named by image_ref.
	Files Files
	Blobs Blobs
	// Usage receives sessions' seconds. It must work until Run returns.
	Usage Usage
	// Budgets limits what sessions may spend; nil means no budgets. It must work until Run returns.
	Budgets Budgets
	Engine  engine.LiveEngine
	// Pictures decodes reference images; nil rejects them.
	Pictures Pictures
	// Enhancer expands prompts; nil turns that off.
	Enhancer Enhancer
	// WebRTC is the second transport; nil turns it off.
	WebRTC  *WebRTC
	Origins httpserver.Origins
	// Edits limits the frames that are edited at the same time. 0 means the number of processors minus one.
	Edits int
	// TextMemory limits the total size, in bytes, of an account's unhandled messages above 64 KiB. 0 means
	// enough for three messages of the maximum size. All accounts together may use three times as much. A quarter of
	// that is reserved for accounts that use little.
	TextMemory int64
	// Times contains a connection's time limits. Zero fields are taken from DefaultTimes.
	Times Times
	// Now is the clock for credentials, budgets and idle clients. Sessions use the monotonic clock.
	Now    func() time.Time
	Logger *slog.Logger
}

type Times struct {
	// Ping is the interval between pings. Pong is the timeout for the reply.
	Ping, Pong time.Duration
	// Idle is the maximum time without a message from the client.
	Idle  time.Duration
	Write time.Duration
	// Message limits how long a client's message may take to arrive.
	Message time.Duration
	// Close limits how long a client may take to read the last message, and then again to answer the close frame.
	// Twice this time must be less than the time from session.FenceAfter to session.TakeAfter.
	Close time.Duration
	// Revocation is the interval at which the keys of open sessions are checked. Each check reads a key once.
	Revocation time.Duration
	// Usage is the interval between usage reports. A crash loses at most this much usage.
	Usage time.Duration
	// Image is the timeout for reading and setting an image. Decode is the timeout for decoding it.
	Image, Decode time.Duration
	// Drain limits how long sessions may take to end when the server stops.
	Drain time.Duration
	// Join limits how long a client may take to join the queue if no session is free.
	Join time.Duration
}

func DefaultTimes() Times {
	return Times{
		Ping: 20 * time.Second, Pong: 10 * time.Second, Idle: 2 * time.Minute, Write: 15 * time.Second,
		Message: 30 * time.Second, Close: 3 * time.Second, Revocation: 20 * time.Second, Usage: time.Minute,
		Image: 20 * time.Second, Decode: 4 * time.Second, Drain: 8 * time.Second, Join: 2 * time.Second,
	}
}

func (t Times) withDefaults() Times {
	d := DefaultTimes()
	for _, limit := range []struct{ set, standard *time.Duration }{
		{&t.Ping, &d.Ping}, {&t.Pong, &d.Pong}, {&t.Idle, &d.Idle}, {&t.Write, &d.Write}, {&t.Close, &d.Close},
		{&t.Revocation, &d.Revocation}, {&t.Usage, &d.Usage}, {&t.Message, &d.Message},
		{&t.Image, &d.Image}, {&t.Decode, &d.Decode}, {&t.Drain, &d.Drain}, {&t.Join, &d.Join},
	} {
		if *limit.set == 0 {
			*limit.set = *limit.standard
		}
	}
	return t
}

// Server serves sessions at the paths of Pattern. Run does the background work.
type Server struct {
	config Config
	// edits limits the frames that are edited at the same time. Accounts take turns.
	edits *ratelimit.Turns
	// changes limits the prompts and images that are prepared at the same time. It has half the limit of edits, so
	// that a flood of prompts leaves processors for frames.
	changes *ratelimit.Turns
	decodes *ratelimit.Turns
	// texts counts the messages that are being read or handled, and kept the messages of waiting clients.
	texts, kept *texts
	meter       *meter

	crowd ratelimit.Open
	// peers forwards requests to other instances. Those requests end when the forwarding context does.
	peers         *peers
	forwarding    context.Context
	endForwarding context.CancelFunc

	mu       sync.Mutex
	open     map[guest]struct{}
	stopping bool
	// handlers counts the connections being served, with or without a session.
	handlers sync.WaitGroup
}

var _ http.Handler = (*Server)(nil)

func New(c Config) *Server {
	c.Times = c.Times.withDefaults()
	if c.Edits == 0 {
		c.Edits = max(1, runtime.GOMAXPROCS(0)-1)
	}
	forwarding, endForwarding := context.WithCancel(context.Background())
	return &Server{
		peers: newPeers(c), forwarding: forwarding, endForwarding: endForwarding,
		config: c, edits: ratelimit.NewTurns(c.Edits, min(1, c.Edits-1)).Lent(), changes: ratelimit.NewTurns(max(c.Edits/2, 1), 0),
		decodes: ratelimit.NewTurns(maxDecodes, 1).AtMost(1), texts: newTexts(c.TextMemory), meter: newMeter(c),
		kept: newTexts(cmp.Or(c.TextMemory, defaultTextMemory) / keptPart),
		open: map[guest]struct{}{},
	}
}

// Run works until the context ends. Then it rejects new sessions, notifies open ones, closes them
// within Times.Drain, and frees all slots.
func (s *Server) Run(ctx context.Context) {
	// Sessions need the lease until the last session has ended.
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

// begin reports whether a connection may be served. If so, call handlers.Done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.handlers.Add(1)
	}
	return !s.stopping
}

// guest is a client that has a session or is waiting for one.
type guest interface {
	key() credential.Hash
	// revoke ends the session or the wait because the key was revoked. leaves ends it because the
	// server is stopping. hangUp closes the connection without a message.
	revoke()
	leaves()
	hangUp()
}

// addGuest registers a guest. It returns false if the server is stopping. In that case, the caller
// must end the guest.
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

func (s *Server) guests() []guest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

// hangUpTime limits how long drain waits for handlers whose connections are closed, so that the server always exits.
const hangUpTime = 10 * time.Second

// drain ends all sessions and lobbies, and waits until their connections are closed.
func (s *Server) drain() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.endForwarding()
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
	select {
	case <-gone:
	case <-time.After(hangUpTime):
		s.config.Logger.Error("some sessions did not end")
	}
}
