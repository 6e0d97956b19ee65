package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
)

type guard struct {
	mu    sync.Mutex
	busy  bool
	calls chan string
	err   error
}

func newGuard() *guard { return &guard{calls: make(chan string, 1000)} }

func (g *guard) set(busy bool, call string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy = busy
	select {
	case g.calls <- call:
	default: // more calls than any test reads
	}
	return g.err
}

func (g *guard) Busy(context.Context) error { return g.set(true, "busy") }
func (g *guard) Idle(context.Context) error { return g.set(false, "idle") }

func (g *guard) isBusy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy
}

// guarding is a queue that fails the test if the worker receives a job while it is not protected.
type guarding struct {
	worker.Queue
	t     *testing.T
	guard *guard
}

func (q guarding) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	if !q.guard.isBusy() {
		q.t.Error("an unprotected worker receives")
	}
	d, err := q.Queue.Receive(ctx, lane, lease)
	if err == nil && !q.guard.isBusy() {
		q.t.Error("an unprotected worker has received")
	}
	return d, err
}

func TestWorkerWithJobIsProtected(t *testing.T) {
	t.Parallel()
	s, stage, g := newFixture(t), newStage(), newGuard()
	s.start(stage.run, func(c *worker.Config) {
		c.Guard, c.GuardEvery, c.Queue = g, 50*time.Millisecond, guarding{s.queue, t, g}
	})
	for _, want := range []string{"busy", "idle", "busy", "idle"} {
		if call := await.Receive(t, "g.calls", g.calls); call != want {
			t.Fatalf("the guard of an idle worker received %s, want %s", call, want)
		}
	}
	id := s.submit("one", 0)
	await.Receive(t, "stage.begun", stage.begun)
	if !g.isBusy() {
		t.Error("a worker with a job is not protected")
	}
	for len(g.calls) > 0 {
		await.Receive(t, "g.calls", g.calls)
	}
	for range 3 {
		if call := await.Receive(t, "g.calls", g.calls); call != "busy" {
			t.Errorf("the guard of a worker with a job received %s", call)
		}
	}
	stage.let <- struct{}{}
	s.wantCompleted(id)
	for call := range g.calls {
		if call == "idle" {
			break
		}
	}
}

func TestFailingGuardDoesNotBlockJobs(t *testing.T) {
	t.Parallel()
	s, g := newFixture(t), newGuard()
	g.err = context.DeadlineExceeded
	s.start(succeed, func(c *worker.Config) { c.Guard, c.GuardEvery = g, 50*time.Millisecond })
	s.wantCompleted(s.submit("one", 0))
}
