// Package worker runs queued jobs. It leases a job, fetches and probes its inputs, and runs the engine while
// recording progress and extending the lease. Then it stores the result and reports it.
//
// Every write is conditional on the run's nonce (see job.Runs), so a worker that has lost its lease
// cannot change anything.
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

type Runs interface {
	job.Runs
	// Errors: fault.NotFound.
	Get(ctx context.Context, id string) (job.Job, error)
}

// Prober probes media files.
//
// Errors: *engine.Error with code invalid_input if the file cannot be decoded or exceeds the catalog's limits.
type Prober interface {
	ProbeVideo(ctx context.Context, path, mime string) (media.Info, error)
	// ReadVideo probes the file. If it must be converted, the converted file is in the folder.
	ReadVideo(ctx context.Context, folder, path, mime string) (engine.Input, error)
	// ReadImage returns the file the way a browser shows it. If it must be converted, the converted
	// file is in the folder.
	ReadImage(ctx context.Context, folder, path, mime string) (engine.Input, error)
}

type Signer interface {
	// Sign copies spec.Output to the path, adds Content Credentials and returns them. It may create
	// temporary files in the path's folder.
	Sign(ctx context.Context, spec engine.Spec, made engine.Outcome, mime, path string) (job.Credentials, error)
}

type Config struct {
	Queue   Queue
	Runs    Runs
	Blobs   blob.Store
	Engine  engine.Engine
	Catalog *catalog.Catalog
	// EngineHealth returns nil while the engine accepts runs. Otherwise, the worker leaves jobs to other workers,
	// and no run is counted. If the function is nil, the engine is always considered healthy.
	EngineHealth func(ctx context.Context) error
	// Free returns the disk space available for a result, in bytes. nil means no limit.
	Free   func() (int64, error)
	Folder string
	Slots  map[job.Lane]int
	// Prefetch makes a slot fetch its next job's inputs shortly before the engine is done (see prefetchAhead). It
	// also lets the engine start the next job while the previous result is being stored.
	Prefetch bool
	// Guard, if set, prevents the platform from stopping the worker while it has a job. GuardEvery
	// is the interval at which this protection is renewed.
	Guard      Guard
	GuardEvery time.Duration
	// Tracer starts the runs' spans. It may be nil.
	Tracer   trace.Tracer
	Observer Observer
	Now      func() time.Time
	Random   io.Reader
	Logger   *slog.Logger

	Tools
	Pace
}

type Tools struct {
	Prober Prober
	// Posters makes thumbnails, Signer adds Content Credentials, and Enhancer expands prompts. Any
	// of them may be nil.
	Posters  Posters
	Signer   Signer
	Enhancer Enhancer
}

// Pace contains the intervals at which a worker reports.
type Pace struct {
	// Lease is how long a worker may be silent before it loses its job. The lease is extended after
	// a third of that time.
	Lease time.Duration
	// ProgressEvery is the minimum interval between writes of progress.
	ProgressEvery time.Duration
	// PreviewEvery is the minimum interval between stored previews of a run. 0 turns previews off.
	PreviewEvery time.Duration
	// CheckEvery is the interval at which a run checks whether it was cancelled. 0 means as often
	// as the lease is extended.
	CheckEvery time.Duration
}

const (
	// settleTime is the timeout for reporting the end of a run, even while draining.
	settleTime = 10 * time.Second
	// deadlineSlack is how long before the job's deadline a run is stopped, to leave time to record its end.
	deadlineSlack = 3 * time.Second
	// troublePause is the pause after the queue fails, and the delay for a job that is returned because of a failure.
	troublePause = time.Second
)

type Worker struct {
	config   Config
	inflight *inflight
	loads    map[job.Lane]*load
	// thumbnailTurns lets two jobs make thumbnails at the same time. Accounts take turns.
	thumbnailTurns *ratelimit.Turns
}

func New(c Config) *Worker {
	w := &Worker{config: c, loads: map[job.Lane]*load{}, thumbnailTurns: ratelimit.NewTurns(2, 1)}
	w.inflight = &inflight{since: map[*lease]time.Time{}}
	for lane, n := range c.Slots {
		w.loads[lane] = &load{slots: n}
	}
	return w
}

// Run works until the context ends. Then it stops the engines and releases the jobs in flight
// without counting their runs. If a result is being stored, it has settleTime to finish.
func (w *Worker) Run(ctx context.Context) {
	admission := &admission{inflight: w.inflight}
	var running sync.WaitGroup
	defer running.Wait()
	if w.config.Guard != nil {
		running.Go(func() { admission.guard(ctx, w.config.Guard, w.config.GuardEvery, w.Stuck, w.config.Logger) })
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

// Stuck reports whether a job in flight is more than a minute past its deadline. If so, the worker must be replaced.
func (w *Worker) Stuck() bool {
	oldest, ok := w.inflight.oldest()
	return ok && w.config.Now().Sub(oldest) > job.MaxAge+time.Minute
}

// settle sends a report, even while draining, and retries while the store is failing. It does not
// log a conflict, which means that another worker has settled the job.
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
			// The lease will expire, and then the job will be received again.
			logger.Error("cannot settle a job", "report", what, "error", err)
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
