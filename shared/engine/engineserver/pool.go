package engineserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"cutroom/shared/engine"
	"cutroom/shared/platform/panics"
)

// Pool sends each run to the engine server with the fewest runs. It is safe for concurrent use.
type Pool struct {
	mu      sync.Mutex
	members []*member
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

func (p *Pool) Capabilities() engine.Capabilities { return engine.Capabilities{Prefetch: true} }

func (p *Pool) Health(ctx context.Context) error {
	checks := make(chan error, len(p.members))
	for _, m := range p.members {
		go func() { checks <- m.check(ctx) }()
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

func (m *member) check(ctx context.Context) (err error) {
	defer panics.Error(&err)
	return m.Health(ctx)
}

// Run prefers a server that accepts runs. If no server does, it waits for the least loaded one.
func (p *Pool) Run(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) (engine.Outcome, error) {
	m := p.choose(ctx)
	defer p.leave(m)
	return m.Run(ctx, spec, progress)
}

func (p *Pool) choose(ctx context.Context) *member {
	var down []*member
	for {
		m := p.take(down)
		if m == nil {
			return p.take(nil)
		}
		if len(p.members) == 1 || m.Health(ctx) == nil {
			return m
		}
		p.leave(m)
		down = append(down, m)
	}
}

// take picks the least loaded server that is not listed in down, and counts the run. It returns nil if all servers
// are listed.
func (p *Pool) take(down []*member) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := slices.DeleteFunc(slices.Clone(p.members), func(m *member) bool { return slices.Contains(down, m) })
	if len(up) == 0 {
		return nil
	}
	fewest := slices.MinFunc(up, func(a, b *member) int { return cmp.Compare(a.runs, b.runs) })
	fewest.runs++
	return fewest
}

func (p *Pool) leave(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.runs--
}
