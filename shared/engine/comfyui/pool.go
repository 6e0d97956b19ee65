package comfyui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"cutroom/shared/engine"
	"cutroom/shared/platform/panics"
)

// pool gives each run to the least loaded server that meets all its requirements.
type pool struct {
	mu       sync.Mutex
	servers  []*server
	starting time.Duration
}

type state struct {
	server *server
	// err is the reason why the server cannot accept runs now, or nil.
	err   error
	lacks []string
	// queued is the number of runs in the server's queue, from all clients.
	queued int
}

// choose waits until a server can accept the run, and counts the run for that server.
func (p *pool) choose(ctx context.Context, w *workflow) (*server, error) {
	patience := time.NewTimer(p.starting)
	defer patience.Stop()
	for {
		states := p.check(ctx, w)
		if s := p.take(states); s != nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err := refusal(states)
		if !err.Retryable {
			return nil, err
		}
		select {
		case <-time.After(retryEvery):
		case <-patience.C:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *pool) check(ctx context.Context, w *workflow) []state {
	states := make([]state, len(p.servers))
	var all sync.WaitGroup
	for i, s := range p.servers {
		all.Go(func() {
			states[i].server = s
			defer panics.Error(&states[i].err)
			states[i] = s.check(ctx, w)
		})
	}
	all.Wait()
	return states
}

// take counts a run for the least loaded server. It returns nil if no server can accept the run.
func (p *pool) take(states []state) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *server
	least := 0
	for _, l := range states {
		if l.err != nil || len(l.lacks) > 0 {
			continue
		}
		// A new run may not be in the server's queue yet.
		if load := max(l.queued, l.server.runs); best == nil || load < least {
			best, least = l.server, load
		}
	}
	if best != nil {
		best.runs++
	}
	return best
}

func (p *pool) leave(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.runs--
}

// refusal returns the error for a run that no server accepts. It is retryable if a server lacks
// nothing or could not be checked.
func refusal(states []state) *engine.Error {
	var causes []error
	unreachable := false
	for _, l := range states {
		switch {
		case l.err != nil:
			unreachable = true
			causes = append(causes, fmt.Errorf("%s: %w", l.server.base, l.err))
		case len(l.lacks) > 0:
			causes = append(causes, fmt.Errorf("%s lacks %s", l.server.base, strings.Join(l.lacks, ", ")))
		}
	}
	cause := errors.Join(causes...)
	if unreachable {
		return failed("The engine cannot be reached.", true, cause)
	}
	return failed("The engine does not meet this model's requirements. The command cutroom doctor lists them.", false, cause)
}

func (p *pool) health(ctx context.Context) error {
	var causes []error
	for _, l := range p.check(ctx, nil) {
		if l.err == nil {
			return nil
		}
		causes = append(causes, fmt.Errorf("comfyui: %s: %w", l.server.base, l.err))
	}
	return errors.Join(causes...)
}

// check checks whether the server can accept runs. If w is not nil, it also checks whether the server can run w.
func (s *server) check(ctx context.Context, w *workflow) state {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	l := state{server: s}
	if l.queued, l.err = s.queued(ctx); l.err == nil {
		l.err = s.checkStuck(ctx)
	}
	if l.err != nil || w == nil {
		return l
	}
	l.lacks, l.err = s.lacks(ctx, w)
	return l
}

func (s *server) queued(ctx context.Context) (int, error) {
	var reported struct {
		Info *struct {
			Remaining int `json:"queue_remaining"`
		} `json:"exec_info"`
	}
	if err := s.get(ctx, "/prompt", &reported); err != nil {
		return 0, err
	}
	if reported.Info == nil || reported.Info.Remaining < 0 {
		return 0, &nonsenseError{errors.New("the response lacks the length of the queue")}
	}
	return reported.Info.Remaining, nil
}

func (s *server) checkStuck(ctx context.Context) error {
	s.mu.Lock()
	stuck := s.stuck
	s.mu.Unlock()
	if stuck == "" {
		return nil
	}
	where, err := s.find(ctx, stuck)
	if err != nil {
		return err
	}
	if where != nowhere {
		return errors.New("a cancelled run is still running")
	}
	s.setStuck("")
	return nil
}

// take records a run's id for the server. It returns false if another run already has the id.
func (s *server) take(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[id] {
		return false
	}
	s.taken[id] = true
	return true
}

func (s *server) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, id)
}

func (s *server) setStuck(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = id
}
