// Package worker takes queued jobs to their outcome: it leases a job, starts a
// run, fetches and probes the inputs, lets the engine work while it reports
// progress and keeps the lease, stores the result and reports it. The same loop
// runs inside the one-machine server and in the worker's container.
//
// A worker is never trusted to stay alive, or to be the only one: every write
// is conditional on the run's nonce (see job.Runs), so that one that lost its
// lease changes nothing.
package worker

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/engine"
)

// Runs is what a worker does to the records of jobs.
type Runs interface {
	job.Runs
	// Get gives the job. It is read before its run starts where its inputs are
	// fetched ahead.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (job.Job, error)
}

// Prober looks into a media file.
//
// Errors: *engine.Error with the code invalid_input when the file cannot be
// decoded, or is beyond the catalog's limits.
type Prober interface {
	ProbeVideo(ctx context.Context, path, mime string) (media.Info, error)
	ProbeImage(ctx context.Context, path, mime string) (media.Info, error)
}

// Config is what a [Worker] is made of.
type Config struct {
	Queue   Queue
	Runs    Runs
	Blobs   blob.Store
	Engine  engine.Engine
	Prober  Prober
	Catalog *catalog.Catalog
	// Enhancer expands the prompts of jobs that ask for it; nil expands none.
	Enhancer Enhancer
	// EngineHealth returns nil while the engine takes runs. A worker whose engine
	// does not leaves jobs to others, and costs them no run. Nil takes the engine
	// for healthy.
	EngineHealth func(ctx context.Context) error
	// Folder is where runs get their scratch folders.
	Folder string
	// Slots is how many jobs of a lane run at once.
	Slots map[job.Lane]int
	// Prefetch keeps engines at work where that is what costs: a slot's next job
	// is received and its inputs are fetched shortly before the engine is done
	// with the last one (see prefetchAhead), whose result is then stored while
	// the engine works on the next.
	Prefetch bool
	// Lease is how long a job stays with a worker that has gone silent. It is
	// extended three times as often.
	Lease time.Duration
	// ProgressEvery is the least time between two records of progress.
	ProgressEvery time.Duration
	// CheckEvery is how often a run looks at its job's record when it has
	// nothing to write, and so the longest that a cancelled one goes on; 0 looks
	// as often as the lease is extended.
	CheckEvery time.Duration
	// Guard keeps the platform from ending the worker while it has a job; nil
	// where nothing would. GuardEvery is how often it is renewed.
	Guard      Guard
	GuardEvery time.Duration
	// Tracer makes spans of runs, beneath those of the jobs' submissions; nil makes
	// none.
	Tracer trace.Tracer
	// Observer is told of every run; nil tells nobody.
	Observer Observer
	Now      func() time.Time
	// Random is read for the nonces of runs.
	Random io.Reader
	Logger *slog.Logger
}

const (
	// settleTime bounds the reports that follow a run, also while draining.
	settleTime = 10 * time.Second
	// deadlineSlack is how long before its deadline a job's run is stopped, so
	// that its end is written in time.
	deadlineSlack = 3 * time.Second
	// troublePause is how long a lane waits after its queue failed.
	troublePause = time.Second
)

// Worker runs jobs. Make it with [New], run it with Run.
type Worker struct {
	Config
	hands *hands
	loads map[job.Lane]*load
}

// New makes a worker.
func New(c Config) *Worker {
	w := &Worker{Config: c, hands: newHands(), loads: map[job.Lane]*load{}}
	for lane, n := range c.Slots {
		w.loads[lane] = &load{slots: n}
	}
	return w
}

// Run works until the context ends. Then it drains: engines are stopped, and
// the jobs in hand are handed back at once, which costs them none of their runs.
// A result that is being stored is stored, if that takes no longer than
// settleTime. Run returns when all is settled.
func (w *Worker) Run(ctx context.Context) {
	gate := &gate{hands: w.hands}
	var running sync.WaitGroup
	defer running.Wait()
	if w.Guard != nil {
		running.Go(func() { gate.guard(ctx, w.Guard, w.GuardEvery, w.Logger) })
	} else {
		gate.open(ctx)
	}
	for name, slots := range w.Slots {
		l := newLane(w, name, slots, gate)
		for range slots {
			running.Go(func() { l.receive(ctx) })
			running.Go(func() { l.work(ctx) })
		}
	}
}

// Stuck reports whether a job is in hand that should have ended by its deadline
// and a minute: its engine is deaf, or the worker has a fault. Whoever watches
// the worker then starts another.
func (w *Worker) Stuck() bool {
	oldest, ok := w.hands.oldest()
	return ok && w.Now().Sub(oldest) > job.MaxAge+time.Minute
}

// settle makes a report, also while draining, and repeats it while the store is
// in trouble. A definite refusal is returned at once; it needs no log line, as
// it means that somebody else has settled the job.
func (w *Worker) settle(ctx context.Context, logger *slog.Logger, what string, report func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := report(ctx)
		if err == nil || fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			return err
		}
		if !pause(ctx, wait) {
			// The lease runs out, and the job is received again.
			logger.Error("settle a job", "report", what, "error", err)
			return err
		}
	}
}

func (w *Worker) newNonce() (string, error) {
	var bytes [8]byte
	if _, err := io.ReadFull(w.Random, bytes[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(bytes[:]), nil
}

// pause waits, and reports whether it did so to the end.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
