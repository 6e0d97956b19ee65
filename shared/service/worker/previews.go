package worker

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/clock"
	"cutroom/shared/platform/panics"
)

// previews stores a run's latest preview (docs/contract/jobs.md#previews). Failures affect only the preview.
type previews struct {
	worker *Worker
	blob   string
	logger *slog.Logger
	end    context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	latest []byte
	// fresh contains an element if the latest preview has not been stored yet.
	fresh  chan struct{}
	stored bool
}

// startPreviews returns nil if previews are off. The caller must call stop, and must call remove once the job has
// ended.
func (w *Worker) startPreviews(ctx context.Context, logger *slog.Logger, j job.Job) *previews {
	if w.config.PreviewEvery <= 0 {
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	p := &previews{
		worker: w, blob: j.PreviewBlob(), logger: logger, end: end,
		done: make(chan struct{}), fresh: make(chan struct{}, 1),
	}
	go func() {
		defer close(p.done)
		panics.Run(logger, "previews", func() { p.keep(ctx) })
	}()
	return p
}

func (p *previews) report(progress engine.Progress) {
	if p == nil || progress.Preview == nil {
		return
	}
	p.mu.Lock()
	p.latest = progress.Preview
	p.mu.Unlock()
	select {
	case p.fresh <- struct{}{}:
	default:
	}
}

// keep stores the latest preview at intervals. No preview of a short run is stored.
func (p *previews) keep(ctx context.Context) {
	failing := false // log a full disk only once
	for clock.Wait(ctx, p.worker.config.PreviewEvery) {
		select {
		case <-ctx.Done():
			return
		case <-p.fresh:
		}
		p.mu.Lock()
		latest := p.latest
		p.mu.Unlock()
		if err := engine.CheckPreview(latest); err != nil {
			p.logger.Warn("the engine sent an invalid preview", "error", err)
			return
		}
		p.stored = true
		err := p.store(ctx, latest)
		if err != nil && ctx.Err() == nil && !failing {
			p.logger.Warn("cannot store a preview; further failures are not logged", "error", err)
		}
		failing = err != nil
	}
}

const previewTime = 30 * time.Second

func (p *previews) store(ctx context.Context, picture []byte) error {
	ctx, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	_, err := p.worker.config.Blobs.Put(ctx, p.blob, bytes.NewReader(picture))
	return err
}

func (p *previews) stop() {
	if p != nil {
		p.end()
		<-p.done
	}
}

func (p *previews) remove(ctx context.Context) {
	if p == nil || !p.stored {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := p.worker.config.Blobs.Delete(ctx, p.blob); err != nil {
		// The preview will be deleted together with the job's other blobs.
		p.logger.Warn("cannot remove a preview", "error", err)
	}
}
