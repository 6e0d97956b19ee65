package comfyui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"cutroom/shared/engine"
	"cutroom/shared/platform/contain"
)

// pool has the servers. A run goes to the least loaded one with all requirements.
type pool struct {
	mu       sync.Mutex
	servers  []*server
	starting time.Duration
}

// look is a server's state before a run is sent to it.
type look struct {
	server *server
	// err is why it takes no runs now, or nil.
	err error
	// lacks are the run's missing requirements.
	lacks []string
	// short means that others use its memory.
	short bool
	// queued is its number of runs, of all clients.
	queued int
}

// choose returns the server for a run, and counts the run. It waits while no server takes the run.
func (p *pool) choose(ctx context.Context, w *workflow) (*server, error) {
	patience := time.NewTimer(p.starting)
	defer patience.Stop()
	for {
		looks := p.look(ctx, w)
		if s := p.take(looks); s != nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err := refusal(looks)
		if !err.Retryable {
			return nil, err
		}
		select {
		case <-time.After(knockEvery):
		case <-patience.C:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// look checks every server at once.
func (p *pool) look(ctx context.Context, w *workflow) []look {
	looks := make([]look, len(p.servers))
	var all sync.WaitGroup
	for i, s := range p.servers {
		all.Go(func() {
			looks[i].server = s
			defer contain.Error(&looks[i].err)
			looks[i] = s.look(ctx, w)
		})
	}
	all.Wait()
	return looks
}

// take counts a run for the least loaded server. It returns nil if every server refuses runs.
func (p *pool) take(looks []look) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *server
	least := 0
	for _, l := range looks {
		if l.err != nil || len(l.lacks) > 0 || l.short {
			continue
		}
		// A new run may not be in its queue yet.
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

// refusal returns why no server takes a run. Another run may succeed if a server lacks nothing, or
// is unknown.
func refusal(looks []look) *engine.Error {
	var causes []error
	var unreachable, short bool
	for _, l := range looks {
		switch {
		case l.err != nil:
			unreachable = true
			causes = append(causes, fmt.Errorf("%s: %w", l.server.base, l.err))
		case len(l.lacks) > 0:
			causes = append(causes, fmt.Errorf("%s lacks %s", l.server.base, strings.Join(l.lacks, ", ")))
		case l.short:
			short = true
			causes = append(causes, fmt.Errorf("%s has not enough memory free", l.server.base))
		}
	}
	cause := errors.Join(causes...)
	switch {
	case unreachable:
		return failed("The engine cannot be reached.", true, cause)
	case short:
		return failed("The engine's memory is in use.", true, cause)
	}
	return failed("The engine lacks what this model needs.", false, cause)
}

// health returns nil if a server takes runs.
func (p *pool) health(ctx context.Context) error {
	var causes []error
	for _, l := range p.look(ctx, nil) {
		if l.err == nil {
			return nil
		}
		causes = append(causes, fmt.Errorf("comfyui: %s: %w", l.server.base, l.err))
	}
	return errors.Join(causes...)
}

// look checks the server before a run of the workflow. If w is nil, it checks only whether it takes runs.
func (s *server) look(ctx context.Context, w *workflow) look {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	l := look{server: s}
	if l.queued, l.err = s.queued(ctx); l.err == nil {
		l.err = s.checkStuck(ctx)
	}
	if l.err != nil || w == nil {
		return l
	}
	if l.lacks, l.err = s.lacks(ctx, w); l.err != nil || len(l.lacks) > 0 || w.Memory == 0 {
		return l
	}
	free, total, err := s.memory(ctx)
	switch {
	case err != nil:
		l.err = err
	case total < w.Memory:
		l.lacks = []string{fmt.Sprintf("memory: it has %d MiB, and %d are needed", total>>20, w.Memory>>20)}
	default:
		l.short = free < w.Memory
	}
	return l
}

func (s *server) queued(ctx context.Context) (int, error) {
	var told struct {
		Info *struct {
			Remaining int `json:"queue_remaining"`
		} `json:"exec_info"`
	}
	if err := s.get(ctx, "/prompt", &told); err != nil {
		return 0, err
	}
	if told.Info == nil || told.Info.Remaining < 0 {
		return 0, &nonsenseError{errors.New("the length of the queue is missing")}
	}
	return told.Info.Remaining, nil
}

// checkStuck fails while a cancelled run is still running.
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
		return errors.New("a run that was cancelled does not end")
	}
	s.setStuck("")
	return nil
}

// take records a run's id on the server. It returns false if another run has it.
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

// memory returns how many bytes of the device's memory a run can use, free or held by the server,
// and the total.
func (s *server) memory(ctx context.Context) (free, total uint64, err error) {
	var told struct {
		Devices []struct {
			Total     uint64 `json:"vram_total"`
			Free      uint64 `json:"vram_free"`
			TorchHas  uint64 `json:"torch_vram_total"`
			TorchFree uint64 `json:"torch_vram_free"`
		} `json:"devices"`
	}
	if err := s.get(ctx, "/system_stats", &told); err != nil {
		return 0, 0, err
	}
	if len(told.Devices) == 0 {
		return 0, 0, &nonsenseError{errors.New("it has no device")}
	}
	d := told.Devices[0]
	// The memory that is free within torch is part of free.
	free = min(d.Free+d.TorchHas-min(d.TorchFree, d.TorchHas), d.Total)
	return free, d.Total, nil
}
