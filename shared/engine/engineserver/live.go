package engineserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
	"cutroom/shared/engine/engineserver/livewire"
	"cutroom/shared/platform/boundedjson"
	"cutroom/shared/platform/panics"
)

const (
	// openTime limits how long opening a session may take. The model must already be loaded.
	openTime = 5 * time.Second
	// A server that takes longer for a frame, a prompt or an image is considered hung.
	defaultFrame = 10 * time.Second
	// maxCatalogue limits the description of a server's models, in bytes.
	maxCatalogue = 1 << 20
)

var ErrNotLive = errors.New("engineserver: no engine server supports live editing with this model")

// Live edits live frames with engine servers (package livewire). Each session goes to the least
// loaded server that has the model and free capacity. It is safe for concurrent use.
type Live struct {
	servers []*liveServer
	frame   time.Duration
	seed    func() uint32
}

type liveServer struct {
	*Engine
	open atomic.Int64
}

var _ engine.LiveEngine = (*Live)(nil)

type LiveConfig struct {
	Servers []Config
	Seed    func() uint32
	// Frame limits how long a server may take for a frame. 0 means ten seconds.
	Frame time.Duration
}

// NewLive does not check whether the servers are running.
func NewLive(c LiveConfig) (*Live, error) {
	l := &Live{frame: cmp.Or(c.Frame, defaultFrame), seed: c.Seed}
	for _, server := range c.Servers {
		e, err := New(server)
		if err != nil {
			return nil, err
		}
		l.servers = append(l.servers, &liveServer{Engine: e})
	}
	if len(l.servers) == 0 {
		return nil, errors.New("no server is configured")
	}
	return l, nil
}

// Errors: ErrNotLive if no server edits live video with the model; fault.Unavailable if the servers
// are loading, full or unreachable.
func (l *Live) Open(ctx context.Context, m *catalog.Model) (engine.LiveEditor, error) {
	e := &liveEditor{live: l, model: m.ID, seed: l.seed(), changing: make(chan struct{}, 1)}
	c, err := l.connect(ctx, e.model, e.seed)
	if err != nil {
		return nil, err
	}
	e.connection = c
	return e, nil
}

// connect opens a session's connection to the first server that accepts it. Errors: as for Open.
func (l *Live) connect(ctx context.Context, model string, seed uint32) (*liveConnection, error) {
	serving, wrong := l.serving(ctx, model)
	if len(serving) == 0 && wrong == nil {
		return nil, ErrNotLive
	}
	for _, s := range serving {
		c, err := s.session(ctx, model, seed)
		if err == nil {
			return c, nil
		}
		wrong = errors.Join(wrong, err)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fault.Wrap(wrong, fault.Unavailable, "The engine has no free session. Try again.")
}

// serving returns the servers that have the model, ordered by their number of sessions.
func (l *Live) serving(ctx context.Context, model string) (found []*liveServer, wrong error) {
	answers := make([]livewire.Catalogue, len(l.servers))
	failures := make([]error, len(l.servers))
	var asking sync.WaitGroup
	for i, s := range l.servers {
		asking.Go(func() {
			defer panics.Error(&failures[i])
			answers[i], failures[i] = s.liveCatalogue(ctx)
		})
	}
	asking.Wait()
	for i, s := range l.servers {
		if _, serves := answers[i].Models[model]; serves && failures[i] == nil {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b *liveServer) int { return cmp.Compare(a.open.Load(), b.open.Load()) })
	return found, errors.Join(failures...)
}

// liveCatalogue returns an empty catalog if the server does not support this version of live sessions.
func (e *Engine) liveCatalogue(ctx context.Context) (reported livewire.Catalogue, err error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base+livewire.Path, nil)
	if err != nil {
		return reported, fmt.Errorf("engineserver: %w", err)
	}
	response, err := e.client.Do(request)
	if err != nil {
		return reported, fmt.Errorf("engineserver: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return reported, nil
	}
	if response.StatusCode != http.StatusOK {
		return reported, fmt.Errorf("engineserver: live models: the engine server returned status %d", response.StatusCode)
	}
	if err := boundedjson.Read(response.Body, maxCatalogue, maxValues, &reported); err != nil {
		return reported, fmt.Errorf("engineserver: live models: %w", err)
	}
	if reported.Version != livewire.Version {
		return livewire.Catalogue{}, nil
	}
	return reported, nil
}

// liveEditor edits frames over a connection. If the connection breaks, it reconnects to any server
// and restores the last prompt and image.
type liveEditor struct {
	live  *Live
	model string
	seed  uint32
	// changing has an element while the prompt, the image or the connection is being changed.
	changing chan struct{}
	number   atomic.Uint32

	mu         sync.Mutex
	connection *liveConnection
	prompt     string
	image      *engine.ReferenceImage
}

var (
	_ engine.LiveEditor    = (*liveEditor)(nil)
	_ engine.LiveOffloaded = (*liveEditor)(nil)
)

func (e *liveEditor) Offloaded() bool { return true }

// Until the server has prepared the prompt, frames are still edited with the previous one.
func (e *liveEditor) SetPrompt(ctx context.Context, prompt string) (engine.Outcome, error) {
	return e.set(ctx, func(number uint32) ([]byte, error) {
		return livewire.AppendText(nil, livewire.Wish{Number: number, Prompt: prompt})
	}, func() { e.prompt = prompt })
}

func (e *liveEditor) SetImage(ctx context.Context, reference *engine.ReferenceImage) (engine.Outcome, error) {
	return e.set(ctx, func(number uint32) ([]byte, error) {
		return livewire.AppendImage(nil, number, reference)
	}, func() { e.image = reference })
}

// set sends a change. Once the server has applied it, set remembers it. Errors: fault.Invalid if
// the server rejects it; fault.Unavailable.
func (e *liveEditor) set(ctx context.Context, message func(number uint32) ([]byte, error),
	remember func()) (reported engine.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.live.frame)
	defer cancel()
	if err := e.lock(ctx); err != nil {
		return reported, err
	}
	defer e.unlock()
	c, err := e.reconnect(ctx)
	if err != nil {
		return reported, err
	}
	number := e.number.Add(1)
	text, err := message(number)
	if err != nil {
		return reported, fault.Wrap(err, fault.Invalid, "The image or prompt is too large for the engine.")
	}
	if reported, err = c.set(ctx, number, text); err != nil {
		return reported, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	remember()
	return reported, nil
}

func (e *liveEditor) lock(ctx context.Context) error {
	select {
	case e.changing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *liveEditor) unlock() { <-e.changing }

// Errors: fault.Invalid if the frame is empty or too large; fault.Unavailable if no server
// accepts the session any more; fault.EngineFailed.
func (e *liveEditor) Edit(ctx context.Context, picture *engine.Picture) (*engine.Picture, error) {
	switch size := picture.Rect.Size(); {
	case size.X < 1 || size.Y < 1:
		return nil, fault.New(fault.Invalid, "The frame is empty.")
	case !livewire.Fits(size):
		return nil, fault.New(fault.Invalid, "The frame is larger than 1920x1088 pixels.")
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case e.asksNothing():
		return picture, nil
	}
	within, cancel := context.WithTimeout(ctx, e.live.frame)
	defer cancel()
	edited, err := e.editOnce(within, picture)
	if errors.Is(err, errLiveEnded) {
		// The server has stopped. It may restart, or another server may accept the session.
		edited, err = e.editOnce(within, picture)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case within.Err() != nil:
		return nil, fault.Wrap(errSilent, fault.EngineFailed, "The engine stopped responding.")
	case errors.Is(err, errLiveEnded):
		return nil, fault.Wrap(err, fault.EngineFailed, "The engine failed.")
	}
	return edited, err
}

func (e *liveEditor) editOnce(ctx context.Context, picture *engine.Picture) (*engine.Picture, error) {
	c := e.current()
	if c == nil {
		if err := e.lock(ctx); err != nil {
			return nil, err
		}
		var err error
		c, err = e.reconnect(ctx)
		e.unlock()
		if err != nil {
			return nil, err
		}
	}
	return c.edit(ctx, e.number.Add(1), picture)
}

func (e *liveEditor) asksNothing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.prompt == "" && e.image == nil
}

func (e *liveEditor) current() *liveConnection {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.connection.hasEnded() {
		return nil
	}
	return e.connection
}

// reconnect reopens the connection if it has ended, and waits for a server if necessary. The caller
// must hold changing.
func (e *liveEditor) reconnect(ctx context.Context) (*liveConnection, error) {
	for {
		if c := e.current(); c != nil {
			return c, nil
		}
		c, err := e.live.connect(ctx, e.model, e.seed)
		if err == nil {
			if err = e.restore(ctx, c); err == nil {
				return c, nil
			}
			c.close()
		}
		if !fault.Is(err, fault.Unavailable) {
			return nil, err
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (e *liveEditor) restore(ctx context.Context, c *liveConnection) error {
	e.mu.Lock()
	prompt, reference, before := e.prompt, e.image, e.connection
	e.mu.Unlock()
	number := e.number.Add(2)
	shown, err := livewire.AppendImage(nil, number-1, reference)
	if err != nil {
		return err
	}
	asked, err := livewire.AppendText(nil, livewire.Wish{Number: number, Prompt: prompt})
	if err != nil {
		return err
	}
	if reference != nil {
		if _, err := c.set(ctx, number-1, shown); err != nil {
			return err
		}
	}
	if prompt != "" {
		if _, err := c.set(ctx, number, asked); err != nil {
			return err
		}
	}
	before.close()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.connection = c
	return nil
}

func (e *liveEditor) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.connection.close()
}
