package worker

import (
	"bytes"
	"context"
	"log/slog"
	"os"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/contain"
)

// Posters makes small pictures of media files.
type Posters interface {
	// Posters returns a small picture of each file, for a video its first one, as a
	// JPEG. It may write into the folder.
	Posters(ctx context.Context, folder string, of []engine.Input) ([][]byte, error)
}

// thumbnails are the pictures of a run's result and input
// (docs/contract/jobs.md#thumbnails), and of the stored files that the inputs are copies
// of (docs/contract/media.md#thumbnails-of-files). They are made while the result is stored and
// reported, and stored after that, so that the job's end waits for neither. The
// run's scratch folder is theirs from then on. A failure costs the pictures, never
// the job.
type thumbnails struct {
	worker *Worker
	job    job.Job
	folder string
	logger *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc

	// made is closed when the pictures are made, or could not be.
	made     chan struct{}
	pictures job.Thumbnails
	// files are the pictures of the stored files that the inputs are copies of, by the
	// files' blobs.
	files map[string][]byte
}

// beginThumbnails starts to make the pictures of a run whose engine is done. The
// caller ends them. It returns nil where no pictures are made.
func (w *Worker) beginThumbnails(lease *lease, j job.Job, p *preparation) *thumbnails {
	if w.config.Posters == nil {
		return nil
	}
	ctx, cancel := lingering(lease.ctx)
	t := &thumbnails{
		worker: w, job: j, folder: p.release(), logger: lease.logger, ctx: ctx, cancel: cancel, made: make(chan struct{}),
		files: map[string][]byte{},
	}
	go func() {
		defer close(t.made)
		contain.Run(t.logger, "thumbnails", func() { t.make(p.spec) })
	}()
	return t
}

// make makes the pictures, those of one run at a time: they must not take the
// engine's processors.
func (t *thumbnails) make(spec engine.Spec) {
	select {
	case t.worker.posing <- struct{}{}:
		defer func() { <-t.worker.posing }()
	case <-t.ctx.Done():
		return
	}
	of := []engine.Input{{Path: spec.Output, MIME: resultMIME(spec.Kind)}}
	data, reference := t.file("data"), t.file("reference_image")
	if spec.Data != nil {
		of = append(of, *spec.Data)
	}
	if spec.Reference != nil && reference != "" {
		of = append(of, *spec.Reference)
	}
	posters, err := t.worker.config.Posters.Posters(t.ctx, t.folder, of)
	if err != nil && len(of) > 1 && t.ctx.Err() == nil {
		// An input may be the cause: an engine may read more than ffmpeg does.
		posters, err = t.worker.config.Posters.Posters(t.ctx, t.folder, of[:1])
	}
	if err != nil {
		t.logger.Warn("make the thumbnails", "error", err)
		return
	}
	t.pictures.Result, posters = posters[0], posters[1:]
	if spec.Data != nil && len(posters) > 0 {
		t.pictures.Input, posters = posters[0], posters[1:]
		if data != "" {
			t.files[data] = t.pictures.Input
		}
	}
	if len(posters) > 0 {
		t.files[reference] = posters[0]
	}
}

// file returns the blob of the stored file that an input is a copy of, if that file has
// no thumbnail yet; otherwise it is empty.
func (t *thumbnails) file(field string) string {
	blob := t.job.Request.Inputs[field].File
	if blob == "" {
		return ""
	}
	_, err := t.worker.config.Blobs.Head(t.ctx, file.ThumbnailBlob(blob))
	if fault.Is(err, fault.NotFound) {
		return blob
	}
	if err != nil {
		t.logger.Warn("look for the thumbnail of a file", "error", err)
	}
	return ""
}

// store stores the pictures, once they are made. It is called when the job is
// completed.
func (t *thumbnails) store() {
	if t == nil {
		return
	}
	<-t.made
	for of, picture := range t.files {
		// A file that was deleted since has none.
		err := file.StoreThumbnail(t.ctx, t.worker.config.Blobs, of, picture)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.logger.Warn("store the thumbnail of a file", "error", err)
		}
	}
	if len(t.pictures.Result) == 0 {
		return
	}
	name := job.ThumbnailsBlob(t.job.ID, t.job.Nonce)
	if _, err := t.worker.config.Blobs.Put(t.ctx, name, bytes.NewReader(t.pictures.Encode())); err != nil {
		t.logger.Warn("store the thumbnails", "error", err)
		return
	}
	// The job may have been deleted since its end, when there was no picture to delete. A
	// deletion looks again once the record is gone, so that whichever is later finds it.
	_, err := t.worker.config.Runs.Get(t.ctx, t.job.ID)
	if fault.Is(err, fault.NotFound) {
		err = t.worker.config.Blobs.Delete(t.ctx, name)
	}
	if err != nil {
		t.logger.Warn("look whether the job was deleted", "error", err)
	}
}

// end stops the work and removes the folder.
func (t *thumbnails) end() {
	if t == nil {
		return
	}
	t.cancel()
	<-t.made
	if err := os.RemoveAll(t.folder); err != nil {
		t.logger.Error("remove a scratch folder", "error", err)
	}
}
