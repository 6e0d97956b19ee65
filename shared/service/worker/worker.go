// Package worker runs queued jobs: it leases a job, starts a run, fetches and
// probes the inputs, lets the engine work while it records progress and extends
// the lease, stores the result and reports it. The same loop runs inside the
// one-machine server and in the worker's container.
//
// A worker is never trusted to stay alive, or to be the only one: every write
// is conditional on the run's nonce (see job.Runs), so that one that has lost
// its lease changes nothing.
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
	"cutroom/shared/domain/ratelimit"
	"cutroom/shared/engine"
	"cutroom/shared/platform/clock"
)

// Runs is what a worker does to the records of jobs.
type Runs interface {
	job.Runs
	// Get returns the job. It is read before its run starts when its inputs are
	// prefetched, and after its thumbnails are stored, because it may have been deleted.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (job.Job, error)
}

// Prober probes media files.
//
// Errors: *engine.Error with the code invalid_input when the file cannot be
// decoded, or is beyond the catalog's limits.
type Prober interface {
	ProbeVideo(ctx context.Context, path, mime string) (media.Info, error)
	ProbeImage(ctx context.Context, path, mime string) (media.Info, error)
}

// Describer tells of a video what its header says, and whether that is all that a probe
// would find (see [Prober]).
type Describer interface {
	DescribeVideo(path, mime string) (info media.Info, whole bool, err error)
}

// Signer puts Content Credentials into results.
type Signer interface {
	// Sign copies spec.Output, of the MIME type, to the path with credentials that say how
	// it was made, and returns what they say. It may use the path's folder.
	Sign(ctx context.Context, spec engine.Spec, made engine.Outcome, mime, path string) (job.Credentials, error)
}

// Config is what a [Worker] needs.
type Config struct {
	Queue   Queue
	Runs    Runs
	Blobs   blob.Store
	Engine  engine.Engine
	Prober  Prober
	Catalog *catalog.Catalog
	// Describer spares plain videos the probe, unless a run fails; nil where each is
	// probed before its run.
	Describer Describer
	// Posters makes the thumbnails of results and inputs; nil makes none.
	Posters Posters
	// Signer puts Content Credentials into results; nil leaves them as the engine made
	// them.
	Signer Signer
	// Enhancer expands the prompts of jobs that ask for it; nil expands none.
	Enhancer Enhancer
	// EngineHealth returns nil while the engine takes runs. While it returns an
	// error, the worker leaves jobs to others, which costs the jobs no run. If
	// it is nil, the engine is taken to be healthy.
	EngineHealth func(ctx context.Context) error
	// Free returns how many more bytes the result of an engine's server may put on the disk;
	// nil means any number.
	Free func() (int64, error)
	// Folder is where runs get their scratch folders.
	Folder string
	// Slots is how many jobs of a lane run at once.
	Slots map[job.Lane]int
	// Prefetch keeps the engine busy: a slot's next job is received and its
	// inputs are fetched shortly before the engine is done with the current one
	// (see prefetchAhead), whose result is then stored while the engine works
	// on the next.
	Prefetch bool
	// Lease is how long a job stays with a worker that has gone silent. It is
	// extended every third of that time.
	Lease time.Duration
	// ProgressEvery is the least time between two writes of progress.
	ProgressEvery time.Duration
	// PreviewEvery is the least time between two previews of a run that are stored, and
	// until the first; 0 stores none.
	PreviewEvery time.Duration
	// CheckEvery is how often a run reads its job's record when it has nothing
	// to write, and so how long a cancelled run may go on; 0 means as often as
	// the lease is extended.
	CheckEvery time.Duration
	// Guard keeps the platform from ending the worker while it has a job; nil
	// where no platform would. GuardEvery is how often it is renewed.
	Guard      Guard
	GuardEvery time.Duration
	// Tracer starts the spans of runs, as children of those of the jobs'
	// submissions; nil starts none.
	Tracer trace.Tracer
	// Observer is told of every run; it may be nil.
	Observer Observer
	Now      func() time.Time
	// Random is the source of runs' nonces.
	Random io.Reader
	Logger *slog.Logger
}

const (
	// settleTime bounds the reports that follow a run, also while draining.
	settleTime = 10 * time.Second
	// deadlineSlack is how long before its job's deadline a run is stopped, so
	// that its end is recorded in time.
	deadlineSlack = 3 * time.Second
	// troublePause is how long a lane waits after its queue failed, and how long a job
	// waits that was handed back because of trouble.
	troublePause = time.Second
)

// Worker runs jobs. Create it with [New] and run it with Run.
type Worker struct {
	config   Config
	inflight *inflight
	loads    map[job.Lane]*load
	// posing are the turns of the accounts whose thumbnails are being made. Two are made at
	// once, so that one account's slow files do not delay all others.
	posing *ratelimit.Turns
}

// New returns a worker; call Run to run it.
func New(c Config) *Worker {
	w := &Worker{config: c, inflight: newInflight(), loads: map[job.Lane]*load{}, posing: ratelimit.NewTurns(2, 1)}
	for lane, n := range c.Slots {
		w.loads[lane] = &load{slots: n}
	}
	return w
}

// Run works until the context ends. Then it drains: engines are stopped and the
// jobs in flight are released at once, which costs them none of their runs. A
// result that is being stored is stored, if that takes no longer than
// settleTime. Run returns when everything is settled.
func (w *Worker) Run(ctx context.Context) {
	admission := &admission{inflight: w.inflight}
	var running sync.WaitGroup
	defer running.Wait()
	if w.config.Guard != nil {
		running.Go(func() { admission.guard(ctx, w.config.Guard, w.config.GuardEvery, w.config.Logger) })
	} else {
		admission.open(ctx)
	}
	for name, slots := range w.config.Slots {
		l := newLane(w, name, slots, admission)
		for range slots {
			running.Go(func() { l.receive(ctx) })
			running.Go(func() { l.work(ctx) })
		}
	}
}

// Stuck reports whether a job is in flight that should have ended by its
// deadline and a minute: its engine does not react, or the worker has a defect.
// Whoever watches the worker then replaces it.
func (w *Worker) Stuck() bool {
	oldest, ok := w.inflight.oldest()
	return ok && w.config.Now().Sub(oldest) > job.MaxAge+time.Minute
}

// settle sends a report, even while draining, and repeats it while the store
// fails. A definite refusal is returned at once and not logged, as it means
// that somebody else has settled the job.
func (w *Worker) settle(
	ctx context.Context, logger *slog.Logger, what string, report func(context.Context) error,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := report(ctx)
		if err == nil || fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			return err
		}
		if !clock.Wait(ctx, wait) {
			// The lease runs out, and the job is received again.
			logger.Error("settle a job", "report", what, "error", err)
			return err
		}
	}
}

func (w *Worker) newNonce() (string, error) {
	var bytes [8]byte
	if _, err := io.ReadFull(w.config.Random, bytes[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(bytes[:]), nil
}
