package engineserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/engine"
	"cutroom/shared/platform/panics"
)

// Pool sends each run to the engine server with the fewest runs. It is safe for concurrent use.
type Pool struct {
	mu      sync.Mutex
	members []*member
	// still makes videos from images, which engine servers cannot do. It may be nil.
	still engine.Engine
}

type member struct {
	*Engine
	runs int
}

var _ engine.Engine = (*Pool)(nil)

// NewPool needs at least one server. It does not check whether the servers are running.
func NewPool(servers ...Config) (*Pool, error) {
	p := &Pool{}
	for _, server := range servers {
		e, err := New(server)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(p.members, func(m *member) bool { return m.base == e.base }) {
			return nil, fmt.Errorf("%q is named twice", server.URL)
		}
		p.members = append(p.members, &member{Engine: e})
	}
	if len(p.members) == 0 {
		return nil, errors.New("no server is configured")
	}
	return p, nil
}

// WithImageToVideo makes another engine, without a trained model, serve image to video. It must be called before the first run.
func (p *Pool) WithImageToVideo(e engine.Engine) *Pool {
	p.still = e
	return p
}

func (p *Pool) Capabilities() engine.Capabilities {
	return engine.Capabilities{Prefetch: true, ImageToVideo: p.still != nil}
}

func (p *Pool) Health(ctx context.Context) error {
	checks := make(chan error, len(p.members))
	for _, m := range p.members {
		go func() {
			_, err := m.check(ctx)
			checks <- err
		}()
	}
	var wrong error
	for range p.members {
		err := <-checks
		if err == nil {
			return nil
		}
		wrong = errors.Join(wrong, err)
	}
	return wrong
}

func (m *member) check(ctx context.Context) (loaded []string, err error) {
	defer panics.Error(&err)
	return m.loaded(ctx)
}

// Run chooses the least loaded server that accepts runs. Among equally loaded servers, it prefers one that has the
// model in memory. If no server accepts runs, Run waits for the least loaded one.
func (p *Pool) Run(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) (engine.Outcome, error) {
	if spec.Kind == catalog.ImageToVideo && p.still != nil {
		outcome, err := p.still.Run(ctx, spec, progress)
		outcome.Untrained = true
		return outcome, err
	}
	m := p.choose(ctx, spec.Model)
	defer p.leave(m)
	return m.Run(ctx, spec, progress)
}

// candidate is a server that may get a run. The numbers are 1 if the server is down, and if it lacks the model.
type candidate struct {
	*member
	down, cold int
}

func (p *Pool) choose(ctx context.Context, model string) *member {
	candidates := make([]candidate, len(p.members))
	var checks sync.WaitGroup
	for i, m := range p.members {
		candidates[i] = candidate{member: m}
		if len(p.members) > 1 {
			checks.Go(func() { candidates[i] = m.candidate(ctx, model) })
		}
	}
	checks.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	best := slices.MinFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.down, b.down), cmp.Compare(a.runs, b.runs), cmp.Compare(a.cold, b.cold))
	}).member
	best.runs++
	return best
}

func (m *member) candidate(ctx context.Context, model string) candidate {
	c := candidate{member: m}
	loaded, err := m.check(ctx)
	if err != nil {
		c.down = 1
	}
	if !slices.Contains(loaded, model) {
		c.cold = 1
	}
	return c
}

func (p *Pool) leave(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.runs--
}
