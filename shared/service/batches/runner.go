// Package batches works on batches: it checks their input, has the gateway make their
// calls behind live ones, keeps the answers, and writes the files with the results
// (docs/contract/batches.md). All of it goes on after a crash: what was done is in the
// records, and each call is answered and billed once.
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
	// DefaultCalls is how many calls of batches are made at once, unless it is set.
	DefaultCalls = 16
	// lookEvery is how often the runner looks for batches that nobody told it of, and
	// for what is to be deleted.
	lookEvery = 5 * time.Second
	// firstRetry and lastRetry are the waits before work that failed inside is begun
	// again, at first and at most.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// Config is what a Runner is made of. Fields are required unless they say otherwise.
type Config struct {
	Store interface {
		batch.Store
		batch.Progress
	}
	Sweeper *batch.Sweeper
	Files   Files
	Blobs   Blobs
	// Storage counts results towards the storage of the account until the batch has ended.
	Storage batch.Storage
	// Keys returns the holders of the keys that batches were made with.
	Keys interface {
		Holder(ctx context.Context, account, keyID string) (credential.Principal, error)
	}
	Gateway Gateway
	// Free returns how many more bytes results may put on the disk; nil means any number.
	Free func() (int64, error)
	// Calls is how many calls are made at once; 0 means DefaultCalls.
	Calls int
	Now   func() time.Time
	// NewID returns a text that is unique for ever and may stand in the name of a blob.
	NewID func() string
	Rhythm
	// Settled reports whether the clock can be trusted to tell that a batch's time is
	// over; nil means always.
	Settled func() bool
	Logger  *slog.Logger
}

// Rhythm is how often a runner does what costs something each time, and how long it waits.
// A field that is 0 is as on one machine.
type Rhythm struct {
	// Keep is for how long answers gather before they are kept together: what a crash
	// loses, and is made again.
	Keep time.Duration
	// Watch is how often a batch in progress is checked for its end. Every fifth check asks
	// whether its key works.
	Watch time.Duration
	// Grace is how long calls that are under way may take after the last one was begun, if the
	// batch goes on later. It is a minute at the most if the batch ends.
	Grace time.Duration
	// Patience is for how long all calls of a batch may be refused before work on it stops,
	// to go on later; 0 means for ever.
	Patience time.Duration
}

// orDefault returns the rhythm with the values of one machine where it has none.
func (h Rhythm) orDefault() Rhythm {
	h.Keep, h.Watch, h.Grace = cmp.Or(h.Keep, keepEvery), cmp.Or(h.Watch, watchEvery), cmp.Or(h.Grace, grace)
	return h
}

// Files stores the files with the results.
type Files interface {
	Get(ctx context.Context, account, id string) (file.File, error)
	Name(f file.File) (file.File, error)
	Create(ctx context.Context, f file.File, limit int64) (file.File, error)
}

// Blobs stores bytes.
type Blobs interface {
	Put(ctx context.Context, name string, r io.Reader) (int64, error)
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, name string) error
}

// Gateway makes the calls.
type Gateway interface {
	AnswerLine(ctx context.Context, who credential.Principal, route catalog.Route, body []byte) gateway.LineAnswer
}

// Runner works on the batches of all accounts. One process does for a store.
type Runner struct {
	config Config
	turns  *ratelimit.Turns
	// calling and checking bound the lines in memory.
	calling, checking *memory
	wake              chan struct{}

	mu    sync.Mutex
	slots *slots
	// changed is closed by Wake, and made anew.
	changed chan struct{}
	working sync.WaitGroup
}

// New returns a runner; Run makes it work.
func New(c Config) *Runner {
	if c.Calls == 0 {
		c.Calls = DefaultCalls
	}
	c.Rhythm = c.orDefault()
	if c.Settled == nil {
		c.Settled = func() bool { return true }
	}
	return &Runner{
		config: c, turns: ratelimit.NewTurns(c.Calls, min(max(c.Calls/4, 1), c.Calls-1)),
		calling: newMemory(callMemory), checking: newMemory(checkMemory),
		wake: make(chan struct{}, 1), slots: newSlots(), changed: make(chan struct{}),
	}
}

// Wake has the runner look at once for what there is to do.
func (r *Runner) Wake() {
	select {
	case r.wake <- struct{}{}:
	default: // it is about to
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// woken returns a channel that the next Wake closes.
func (r *Runner) woken() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Run works until the context ends. It then gives calls up that are under way, keeps
// the answers that it has, and returns.
func (r *Runner) Run(ctx context.Context) {
	defer r.working.Wait()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			r.config.Logger.Error("look for batches", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-ticker.C:
		}
	}
}

// look begins to work on batches, and clears those that have ended.
func (r *Runner) look(ctx context.Context) error {
	swept := r.config.Sweeper.Sweep(ctx)
	open, err := r.config.Store.Open(ctx)
	if err != nil {
		return errors.Join(swept, err)
	}
	for r.begin(ctx, open) {
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots.makeRoom(open)
	return swept
}

// begin begins to work on the next of the open batches, and reports whether there was one
// and a place for it.
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

// Work works on a batch as Run does until it has ended, or the time is over or Patience is:
// it then waits for calls that are under way, as long as Grace says, and returns. When the
// context ends it gives them up and returns. It is for processes that are told what to work
// on; somebody sees to it that one works on a batch at a time.
func (r *Runner) Work(ctx context.Context, b batch.Batch, stay time.Duration) {
	staying, handOver := context.WithCancelCause(ctx)
	defer handOver(nil)
	defer time.AfterFunc(stay, func() { handOver(errHandedOver) }).Stop()
	r.work(ctx, staying, handOver, b)
}

// work works on a batch until it has ended, or a context ends: that of staying when it
// hands its place over, so that calls that are under way may still end.
func (r *Runner) work(ctx, staying context.Context, handOver context.CancelCauseFunc, b batch.Batch) {
	retry, noted := firstRetry, false
	defer func() {
		if noted {
			r.stopped(ctx, b)
		}
	}()
	for staying.Err() == nil {
		// Somebody may have cancelled it, or changed the clock.
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
		r.config.Logger.Error("work on a batch; trying again", "batch", b.ID, "account", b.Account, "error", err,
			"again_in", retry)
		if !clock.Wait(staying, retry) {
			return
		}
		retry = min(2*retry, lastRetry)
	}
}

// lose ends a batch whose blobs are gone.
func (r *Runner) lose(ctx context.Context, b batch.Batch, cause error) {
	err := r.fail(ctx, b, batch.Error{Code: "data_lost", Message: "The service has lost data of the batch."})
	r.config.Logger.Error("data of a batch is not there", "batch", b.ID, "account", b.Account,
		"error", errors.Join(cause, err))
}

// step takes a batch from its status to the next.
//
// Errors: fault.Conflict if its status has changed meanwhile.
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

// change records that a batch goes on from the status.
func (r *Runner) change(ctx context.Context, from batch.Status, b batch.Batch) error {
	if err := r.config.Store.Change(ctx, from, b); err != nil {
		return err
	}
	if b.Status != from {
		r.config.Logger.Info("a batch went on", "batch", b.ID, "account", b.Account, "status", string(b.Status),
			"total", b.Total, "answered", b.Answered, "failed", b.Failed)
	}
	return nil
}

// fits returns an error while there is no room for so many bytes of results.
//
// Errors: fault.StorageFull.
func (r *Runner) fits(bytes int64) error {
	if r.config.Free == nil {
		return nil
	}
	free, err := r.config.Free()
	if err == nil && free < bytes {
		err = fault.New(fault.StorageFull, "There is no room left for results on the server's disk.")
	}
	return err
}

// now is the time as it is recorded.
func (r *Runner) now() time.Time { return r.config.Now().UTC().Truncate(time.Millisecond) }
