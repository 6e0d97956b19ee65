package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
)

type panics struct{ done atomic.Bool }

func (p *panics) once() {
	if p.done.CompareAndSwap(false, true) {
		panic("a test")
	}
}

type faultyQueue struct {
	worker.Queue
	receive, extend *panics
}

func (q *faultyQueue) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	if q.receive != nil {
		q.receive.once()
	}
	d, err := q.Queue.Receive(ctx, lane, lease)
	if err != nil || q.extend == nil {
		return d, err
	}
	return &faultyDelivery{d, q.extend}, nil
}

type faultyDelivery struct {
	worker.Delivery
	extend *panics
}

func (d *faultyDelivery) Extend(ctx context.Context, lease time.Duration) error {
	d.extend.once()
	return d.Delivery.Extend(ctx, lease)
}

type faultyRuns struct {
	worker.Runs
	start, progress *panics
}

func (r *faultyRuns) Start(ctx context.Context, id, nonce string, now time.Time) (job.Job, error) {
	if r.start != nil {
		r.start.once()
	}
	return r.Runs.Start(ctx, id, nonce, now)
}

func (r *faultyRuns) Progress(ctx context.Context, id, nonce string, fraction float64) error {
	if r.progress != nil {
		r.progress.once()
	}
	return r.Runs.Progress(ctx, id, nonce, fraction)
}

func TestPanicCostsAtMostOneRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *worker.Config, p *panics){
		"in the queue":    func(c *worker.Config, p *panics) { c.Queue = &faultyQueue{Queue: c.Queue, receive: p} },
		"in the lease":    func(c *worker.Config, p *panics) { c.Queue = &faultyQueue{Queue: c.Queue, extend: p} },
		"at the start":    func(c *worker.Config, p *panics) { c.Runs = &faultyRuns{Runs: c.Runs, start: p} },
		"in its progress": func(c *worker.Config, p *panics) { c.Runs = &faultyRuns{Runs: c.Runs, progress: p} },
		"while prefetched": func(c *worker.Config, p *panics) {
			c.Prefetch, c.Runs = true, &faultyRuns{Runs: c.Runs, start: p}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			id := s.submit("clip", 0)
			var panicked panics
			stop := s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
				// The run lasts until something has panicked.
				for !panicked.done.Load() {
					progress(engine.Progress{Fraction: 0.5})
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(time.Millisecond):
					}
				}
				return succeed(ctx, spec, progress)
			}, shortLease, func(c *worker.Config) { change(c, &panicked) })
			if j := s.awaitEnd(id); j.Status != job.Completed || j.Runs > 2 {
				t.Errorf("the job is %s after %d runs", j.Status, j.Runs)
			}
			s.wantClean(stop)
		})
	}
}
