// Package batches runs batches: it validates their input, makes their calls through the gateway
// with lower priority than live calls, and writes the result files (docs/contract/batches.md). It
// continues after a crash. Each call is completed and billed once.
package batches

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/batch"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/platform/clock"
	"cutroom/shared/service/gateway"
)

const (
	DefaultCalls = 16
	// pollEvery is how often the runner looks for new batches, and for old data to delete.
	pollEvery = 5 * time.Second
	// The shortest and the longest delay before failed work is retried.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// Config configures a Runner. Fields are required unless their comment says otherwise.
type Config struct {
	Store interface {
		batch.Store
		batch.Progress
	}
	Sweeper *batch.Sweeper
	Files   Files
	Blobs   Blobs
	// Storage counts results towards the account's storage until the batch ends.
	Storage batch.Storage
	Keys    interface {
		Holder(ctx context.Context, account, keyID string) (credential.Principal, error)
	}
	Gateway Gateway
	// Free returns how many bytes of results fit on the disk. nil means no limit.
	Free func() (int64, error)
	// Calls limits the concurrent calls. 0 means DefaultCalls.
	Calls int
	Now   func() time.Time
	// NewID returns a globally unique id for blob names.
	NewID func() string
	Intervals
	// Settled reports whether the clock can be trusted to expire batches. nil means always.
	Settled func() bool
	Logger  *slog.Logger
}

// Intervals sets the intervals of work that costs money. 0 means the default for a single machine.
type Intervals struct {
	// Keep is how often results are stored. After a crash, calls whose results were not stored are repeated.
	Keep time.Duration
	// Watch is how often a batch in progress is checked. Every fifth check also checks its key.
	Watch time.Duration
	// Grace is how long running calls may continue once no new calls are made. If the batch has ended, it is at most
	// a minute.
	Grace time.Duration
	// PauseAfter is how long all calls may be rejected before work on the batch pauses. 0 means no limit.
	PauseAfter time.Duration
}

func (i Intervals) orDefault() Intervals {
	i.Keep, i.Watch, i.Grace = cmp.Or(i.Keep, keepEvery), cmp.Or(i.Watch, watchEvery), cmp.Or(i.Grace, grace)
	return i
}

type Files interface {
	Get(ctx context.Context, account, id string) (file.File, error)
	Name(f file.File) (file.File, error)
	Create(ctx context.Context, f file.File, limit int64) (file.File, error)
}

type Blobs interface {
	Put(ctx context.Context, name string, r io.Reader) (int64, error)
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, name string) error
}

type Gateway interface {
	BatchCall(ctx context.Context, who credential.Principal, route catalog.Route, body []byte) gateway.BatchResponse
}

// Runner works on all accounts' batches. Only one process per store may run a Runner.
type Runner struct {
	config Config
	turns  *ratelimit.Turns
	// validations makes accounts take turns when their inputs are checked, because the largest input takes a second.
	validations       *ratelimit.Turns
	calling, checking *memory
	wake              chan struct{}

	mu    sync.Mutex
	slots *slots
	// changed is closed and replaced by Wake.
	changed chan struct{}
	working sync.WaitGroup
}

func New(c Config) *Runner {
	if c.Calls == 0 {
		c.Calls = DefaultCalls
	}
	c.Intervals = c.orDefault()
	if c.Settled == nil {
		c.Settled = func() bool { return true }
	}
	return &Runner{
		config: c, turns: ratelimit.NewTurns(c.Calls, min(max(c.Calls/4, 1), c.Calls-1)),
		validations: ratelimit.NewTurns(2, 1),
		calling:     newMemory(callMemory), checking: newMemory(checkMemory),
		wake: make(chan struct{}, 1), slots: newSlots(), changed: make(chan struct{}),
	}
}

func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Runner) woken() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Run works until the context ends. It then cancels running calls and stores their results.
func (r *Runner) Run(ctx context.Context) {
	defer r.working.Wait()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if err := r.poll(ctx); err != nil && ctx.Err() == nil {
			r.config.Logger.Error("cannot poll batches", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-ticker.C:
		}
	}
}

// poll starts work on open batches and cleans up after ended batches.
func (r *Runner) poll(ctx context.Context) error {
	swept := r.config.Sweeper.Sweep(ctx)
	open, err := r.config.Store.Open(ctx)
	if err != nil {
		return errors.Join(swept, err)
	}
	for r.begin(ctx, open) {
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots.rebalance(open)
	return swept
}

// begin starts work on the next open batch. It returns false if there is no open batch or no free slot.
func (r *Runner) begin(ctx context.Context, open []batch.Batch) bool {
	staying, handOver := context.WithCancelCause(ctx)
	r.mu.Lock()
	b, ok := r.slots.take(open, handOver)
	r.mu.Unlock()
	if !ok {
		handOver(nil)
		return false
	}
	r.working.Go(func() {
		r.work(ctx, staying, handOver, b)
		handOver(nil)
		r.mu.Lock()
		delete(r.slots.active, b.ID)
		r.mu.Unlock()
		r.Wake()
	})
	return true
}

// Work works on one batch, as Run does, until the batch has ended, the time in stay has passed, or PauseAfter is
// reached. It then waits up to Grace for running calls. The caller must ensure that only one process at a time works
// on a batch.
func (r *Runner) Work(ctx context.Context, b batch.Batch, stay time.Duration) {
	staying, handOver := context.WithCancelCause(ctx)
	defer handOver(nil)
	defer time.AfterFunc(stay, func() { handOver(errHandedOver) }).Stop()
	r.work(ctx, staying, handOver, b)
}

// work works on a batch until the batch ends. Once its second context has ended, only running calls continue.
func (r *Runner) work(ctx, staying context.Context, handOver context.CancelCauseFunc, b batch.Batch) {
	retry, noted := firstRetry, false
	defer func() {
		if noted {
			r.stopped(ctx, b)
		}
	}()
	for staying.Err() == nil {
		// Read the batch again, because it may have been cancelled, or the clock may have changed.
		current, err := r.config.Store.Get(ctx, b.Account, b.ID)
		if err == nil {
			if b = current; b.Status.Ended() {
				return
			}
			if noted {
				err = r.step(ctx, staying, handOver, b)
			} else {
				err = r.attempt(ctx, b)
				noted = err == nil
			}
		}
		switch {
		case staying.Err() != nil:
			return
		case fault.Is(err, fault.NotFound):
			r.lose(ctx, b, err)
			return
		case err == nil, fault.Is(err, fault.Conflict):
			retry = firstRetry
			continue
		}
		r.config.Logger.Error("cannot process a batch; trying again", "batch", b.ID, "account", b.Account, "error", err,
			"again_in", retry)
		if !clock.Wait(staying, retry) {
			return
		}
		retry = min(2*retry, lastRetry)
	}
}

func (r *Runner) lose(ctx context.Context, b batch.Batch, cause error) {
	err := r.fail(ctx, b, batch.Error{Code: "data_lost", Message: "The service lost some of the batch's data."})
	r.config.Logger.Error("batch data is missing", "batch", b.ID, "account", b.Account,
		"error", errors.Join(cause, err))
}

// step moves a batch to its next status.
//
// Errors: fault.Conflict if the status has changed.
func (r *Runner) step(ctx, staying context.Context, handOver context.CancelCauseFunc, b batch.Batch) error {
	switch b.Status {
	case batch.Validating:
		return r.validate(ctx, b)
	case batch.InProgress:
		return r.answer(ctx, staying, handOver, b)
	case batch.Cancelling:
		b.Outcome = batch.Cancelled
		return r.finalize(ctx, b)
	default:
		return r.finalize(ctx, b)
	}
}

// change stores a changed batch. from is the status before the change.
func (r *Runner) change(ctx context.Context, from batch.Status, b batch.Batch) error {
	if err := r.config.Store.Change(ctx, from, b); err != nil {
		return err
	}
	if b.Status != from {
		r.config.Logger.Info("batch status changed", "batch", b.ID, "account", b.Account, "status", string(b.Status),
			"total", b.Total, "answered", b.Answered, "failed", b.Failed)
	}
	return nil
}

// fits returns fault.StorageFull if the disk has too little space for the results.
func (r *Runner) fits(bytes int64) error {
	if r.config.Free == nil {
		return nil
	}
	free, err := r.config.Free()
	if err == nil && free < bytes {
		err = fault.New(fault.StorageFull, "The server's disk is full. It has no space for results.")
	}
	return err
}

func (r *Runner) now() time.Time { return r.config.Now().UTC().Truncate(time.Millisecond) }
