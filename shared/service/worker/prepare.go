package worker

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/panics"
)

// preparation fetches a job's inputs into a folder, probes them, and expands the prompt, all in the
// background. The caller must discard it.
type preparation struct {
	spec     engine.Spec
	enhanced string
	stages   map[string]time.Duration

	job    job.Job
	folder string
	err    error
	cancel context.CancelFunc
	done   chan struct{}
	logger *slog.Logger
}

func (w *Worker) prepare(ctx context.Context, j job.Job) *preparation {
	ctx, cancel := context.WithCancel(ctx)
	p := &preparation{
		job: j, stages: map[string]time.Duration{}, cancel: cancel, done: make(chan struct{}), logger: w.config.Logger,
	}
	go func() {
		defer close(p.done)
		if p.err = p.do(ctx, w); p.err != nil {
			// Partial inputs may have filled the disk, and the running job needs the space.
			p.remove()
		}
	}()
	return p
}

func (p *preparation) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *preparation) discard() {
	p.cancel()
	<-p.done
	p.remove()
}

// release returns the folder, which the caller must then remove.
func (p *preparation) release() (folder string) {
	folder, p.folder = p.folder, ""
	return folder
}

func (p *preparation) remove() {
	if p.folder == "" {
		return
	}
	if err := os.RemoveAll(p.folder); err != nil {
		p.logger.Error("cannot remove a scratch folder", "job", p.job.ID, "error", err)
	}
}

func (p *preparation) do(ctx context.Context, w *Worker) (err error) {
	defer panics.Error(&err)
	m, ok := w.config.Catalog.Find(p.job.Model)
	if !ok {
		return &engine.Error{Code: job.EngineError, Message: "The model is no longer available."}
	}
	if m.Kind == catalog.ImageToVideo && !engine.CapabilitiesOf(w.config.Engine).ImageToVideo {
		return &engine.Error{Code: job.EngineError, Message: "The engine makes no videos from images."}
	}
	if p.folder, err = os.MkdirTemp(w.config.Folder, p.job.ID+"-"); err != nil {
		return fmt.Errorf("create a scratch folder: %w", err)
	}
	if err := p.makeSpec(ctx, w, m); err != nil {
		return err
	}
	begun := time.Now()
	if p.enhanced = w.enhance(ctx, p.job, m); p.enhanced != "" {
		p.spec.Prompt = p.enhanced
		p.stages[stageEnhance] = time.Since(begun)
	}
	return nil
}

func (p *preparation) makeSpec(ctx context.Context, w *Worker, m *catalog.Model) error {
	scratch := filepath.Join(p.folder, "engine")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return fmt.Errorf("create a scratch folder: %w", err)
	}
	extension := ".mp4"
	if m.Kind == catalog.Image {
		extension = ".png"
	}
	j := p.job
	spec := engine.Spec{
		Job: j.ID, Model: m.ID, Kind: m.Kind, Prompt: j.Request.Prompt, Seed: j.Seed, Options: j.Request.EngineOptions(),
		Duration: m.Duration,
		Folder:   scratch, Output: filepath.Join(scratch, "output"+extension), Thumbnails: w.config.Posters != nil,
	}
	var err error
	if spec.Reference, err = p.input(ctx, w, catalog.ReferenceField, catalog.ImageFile); err != nil {
		return err
	}
	if spec.Data, err = p.input(ctx, w, catalog.DataField, m.DataType()); err != nil {
		return err
	}
	var input catalog.Size
	var rate float64
	if spec.Data != nil {
		info := spec.Data.Info
		input, rate = catalog.Size{Width: info.Width, Height: info.Height}, info.FrameRate
		if m.DataType() == catalog.VideoFile {
			spec.Duration = info.Duration
			err = checkLength(j, spec.Duration)
		}
	}
	plan := m.Plan(j.Request.Option(catalog.ResolutionField), j.Request.Option("orientation"), input, rate)
	spec.Size, spec.FPS = catalog.Size{Width: plan.Width, Height: plan.Height}, plan.FPS
	p.spec = spec
	return err
}

// slack returns how much longer a clip or a result may be than the reserved length. Headers are imprecise, and video
// and sound rarely end together. The slack is at most the reserved length, because short clips would otherwise be
// almost free.
func slack(reserved time.Duration) time.Duration { return min(max(time.Second, reserved/10), reserved) }

// checkLength rejects a clip that is longer than its header states, if the clip's cost was reserved or the clip was
// accepted as a brief job. It tolerates some difference (see slack).
func checkLength(j job.Job, length time.Duration) error {
	header := cmp.Or(j.Request.Clip, j.Request.Length)
	depends := len(j.Holds) > 0 || j.Brief() && length > job.BriefLength
	if !depends || header <= 0 || length <= header+slack(header) {
		return nil
	}
	return &engine.Error{Code: job.InvalidInput, Message: "The clip is longer than its header states."}
}

func (p *preparation) input(
	ctx context.Context, w *Worker, field string, want catalog.FieldType,
) (*engine.Input, error) {
	stored, ok := p.job.Request.Inputs[field]
	if !ok {
		return nil, nil
	}
	path := filepath.Join(p.folder, field)
	begun := time.Now()
	fetching, end := w.beginStage(ctx, stageFetch)
	err := blob.Fetch(fetching, w.config.Blobs, stored.Blob, path)
	end(err)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			return nil, &engine.Error{Code: job.EngineError, Message: "An input file of the job no longer exists.", Err: err}
		}
		return nil, fmt.Errorf("fetch %s: %w", field, err)
	}
	fetched := time.Now()
	p.stages[stageFetch] += fetched.Sub(begun)
	probing, end := w.beginStage(ctx, stageProbe)
	read := engine.Input{Path: path, MIME: stored.MIME}
	if want == catalog.ImageFile {
		read, err = w.config.Prober.ReadImage(probing, p.folder, path, stored.MIME)
	} else {
		read, err = w.config.Prober.ReadVideo(probing, p.folder, path, stored.MIME)
	}
	end(err)
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", field, err)
	}
	p.stages[stageProbe] += time.Since(fetched)
	return &read, nil
}
