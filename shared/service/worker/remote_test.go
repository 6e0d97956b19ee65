package worker_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/service/worker"
)

// slow is a blob store whose writes take longer than a lease.
type slow struct {
	blob.Store
	leases *atomic.Int64
	enough chan struct{}
}

func (s slow) Put(ctx context.Context, name string, r io.Reader) (int64, error) {
	select {
	case <-s.enough:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return s.Store.Put(ctx, name, r)
}

// counting counts lease extensions, and closes the channel enough when they have outlasted the first lease.
type counting struct {
	worker.Queue
	slow slow
}

func (q counting) Receive(ctx context.Context, lane job.Lane, lease time.Duration) (worker.Delivery, error) {
	d, err := q.Queue.Receive(ctx, lane, lease)
	return countingDelivery{d, q.slow}, err
}

type countingDelivery struct {
	worker.Delivery
	slow slow
}

func (d countingDelivery) Extend(ctx context.Context, lease time.Duration) error {
	if d.slow.leases.Add(1) == 4 {
		close(d.slow.enough)
	}
	return d.Delivery.Extend(ctx, lease)
}

func TestSlowUploadKeepsLease(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	store := slow{s.blobs, new(atomic.Int64), make(chan struct{})}
	id := s.submit("clip", 0)
	runs := 0
	s.start(func(ctx context.Context, spec engine.Spec, progress func(engine.Progress)) error {
		runs++
		return succeed(ctx, spec, progress)
	}, shortLease, func(c *worker.Config) { c.Blobs, c.Queue = store, counting{s.queue, store} })
	if j := s.awaitEnd(id); j.Status != job.Completed || j.Runs != 1 || runs != 1 {
		t.Errorf("got %+v after %d runs", j, runs)
	}
}
