package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"cutroom/shared/blob"
	"cutroom/shared/engine"
	"cutroom/shared/fault"
	"cutroom/shared/job"
	"cutroom/shared/model"
)

// edit does the work of a run, in a scratch folder that is gone afterwards, and
// gives the stored result. A panic, which a stranger's file may have set off,
// costs the run, not the worker.
func (w *Worker) edit(ctx context.Context, j job.Job, progress func(engine.Progress)) (result job.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the run panicked: %v\n%s", p, debug.Stack())
		}
	}()
	m, ok := w.Catalog.Find(j.Model)
	if !ok {
		return result, &engine.Error{Code: job.EngineError, Message: "The model is no longer offered."}
	}
	folder, err := os.MkdirTemp(w.Folder, j.ID+"-")
	if err != nil {
		return result, fmt.Errorf("make a scratch folder: %w", err)
	}
	defer func() {
		if gone := os.RemoveAll(folder); gone != nil {
			w.Logger.Error("remove a scratch folder", "job", j.ID, "error", gone)
		}
	}()
	spec, err := w.spec(ctx, j, m, folder)
	if err != nil {
		return result, err
	}
	enhanced := w.enhance(ctx, j, m)
	if enhanced != "" {
		spec.Prompt = enhanced
	}
	if err := w.Engine.Run(ctx, spec, progress); err != nil {
		return result, err
	}
	result, err = w.store(ctx, j, m, spec.Output)
	result.EnhancedPrompt = enhanced
	return result, err
}

// spec fetches and probes the inputs and says what the engine is to do.
func (w *Worker) spec(ctx context.Context, j job.Job, m *model.Model, folder string) (engine.Spec, error) {
	scratch := filepath.Join(folder, "engine")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return engine.Spec{}, fmt.Errorf("make a scratch folder: %w", err)
	}
	extension := ".mp4"
	if m.Kind == model.Image {
		extension = ".png"
	}
	spec := engine.Spec{
		Job: j.ID, Model: m.ID, Kind: m.Kind, Prompt: j.Request.Prompt, Seed: j.Seed, Options: j.Request.Options,
		Size: m.Sizes[j.Request.Option("resolution")], FPS: m.FPS, Duration: m.Duration,
		Folder: scratch, Output: filepath.Join(scratch, "output"+extension),
	}
	var err error
	if spec.Reference, err = w.input(ctx, j, "reference_image", model.ImageFile, folder); err != nil {
		return spec, err
	}
	if spec.Data, err = w.input(ctx, j, "data", m.DataType(), folder); err != nil {
		return spec, err
	}
	switch {
	case spec.Data != nil:
		spec.Size = spec.Size.Fit(model.Size{Width: spec.Data.Info.Width, Height: spec.Data.Info.Height})
		if m.Kind != model.Image {
			spec.Duration = spec.Data.Info.Duration
		}
	case j.Request.Option("orientation") == "portrait":
		spec.Size = spec.Size.Portrait()
	}
	return spec, nil
}

// input fetches and probes one input file; nil when the job has none.
func (w *Worker) input(ctx context.Context, j job.Job, field string, want model.FieldType, folder string) (*engine.Input, error) {
	stored, ok := j.Request.Inputs[field]
	if !ok {
		return nil, nil
	}
	path := filepath.Join(folder, field)
	if err := blob.Fetch(ctx, w.Blobs, stored.Blob, path); err != nil {
		if fault.Is(err, fault.NotFound) {
			return nil, &engine.Error{Code: job.EngineError, Message: "An input of the job is gone.", Err: err}
		}
		return nil, fmt.Errorf("fetch %s: %w", field, err)
	}
	probe := w.Prober.ProbeVideo
	if want == model.ImageFile {
		probe = w.Prober.ProbeImage
	}
	info, err := probe(ctx, path, stored.MIME)
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", field, err)
	}
	return &engine.Input{Path: path, MIME: stored.MIME, Info: info}, nil
}

// store puts the engine's output under the run's name.
func (w *Worker) store(ctx context.Context, j job.Job, m *model.Model, output string) (job.Result, error) {
	file, err := os.Open(output)
	if err != nil {
		return job.Result{}, fmt.Errorf("open the engine's output: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	result := job.Result{Blob: job.ResultBlob(j.ID, j.Nonce), MIME: "video/mp4"}
	if m.Kind == model.Image {
		result.MIME = "image/png"
	}
	result.Size, err = w.Blobs.Put(ctx, result.Blob, io.TeeReader(file, hash))
	if err != nil {
		return job.Result{}, fmt.Errorf("store the result: %w", err)
	}
	if result.Size == 0 {
		return job.Result{}, errors.New("the engine's output is empty")
	}
	result.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return result, nil
}
