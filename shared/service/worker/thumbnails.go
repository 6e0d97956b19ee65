package worker

import (
	"bytes"
	"context"
	"log/slog"
	"os"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/engine"
	"cutroom/shared/platform/panics"
)

type Posters interface {
	// Posters returns a JPEG thumbnail of each file. It may write to the folder.
	Posters(ctx context.Context, folder string, of []engine.Depicted) ([][]byte, error)
}

// thumbnails makes pictures of a run's result and input (docs/contract/jobs.md#thumbnails), and of stored files
// (docs/contract/media.md#thumbnails-of-files), while the result is being stored. It stores them after the job
// has ended. It owns the run's scratch folder. Failures affect only the pictures.
type thumbnails struct {
	worker *Worker
	job    job.Job
	folder string
	logger *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc

	made     chan struct{}
	pictures job.Thumbnails
	// files contains the pictures of stored files, keyed by blob.
	files map[string][]byte
}

// beginThumbnails makes the pictures that the engine has not made. It returns nil if thumbnails are
// off. Otherwise, the caller must call end.
func (w *Worker) beginThumbnails(lease *lease, j job.Job, p *preparation, made func() engine.Thumbnails) *thumbnails {
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
		panics.Run(t.logger, "thumbnails", func() {
			if made != nil {
				t.pictures = job.Thumbnails(made())
			}
			t.make(p.spec)
		})
	}()
	return t
}

type wanted struct {
	of  engine.Depicted
	use func(picture []byte)
}

func (t *thumbnails) missing(spec engine.Spec) []wanted {
	var all []wanted
	of := func(one engine.Input) engine.Depicted { return engine.Depicted{Input: one} }
	result := engine.Input{Path: spec.Output, MIME: resultMIME(spec.Kind)}
	if len(t.pictures.Result) == 0 {
		all = append(all, wanted{of(result), func(picture []byte) { t.pictures.Result = picture }})
	}
	if len(t.pictures.Poster) == 0 && spec.Kind != catalog.Image {
		poster := engine.Depicted{Input: result, Poster: true}
		all = append(all, wanted{poster, func(picture []byte) { t.pictures.Poster = picture }})
	}
	if spec.Data != nil {
		stored := t.file(catalog.DataField)
		use := func(picture []byte) {
			t.pictures.Input = picture
			if stored != "" {
				t.files[stored] = picture
			}
		}
		if len(t.pictures.Input) > 0 {
			use(t.pictures.Input)
		} else {
			all = append(all, wanted{of(*spec.Data), use})
		}
	}
	if stored := t.file(catalog.ReferenceField); spec.Reference != nil && stored != "" {
		all = append(all, wanted{of(*spec.Reference), func(picture []byte) { t.files[stored] = picture }})
	}
	return all
}

func (t *thumbnails) make(spec engine.Spec) {
	missing := t.missing(spec)
	if len(missing) == 0 {
		return
	}
	account := t.job.Account
	if !t.worker.thumbnailTurns.Take(t.ctx, account) {
		return
	}
	defer t.worker.thumbnailTurns.Release(account)
	of, own := make([]engine.Depicted, len(missing)), 0
	for i, one := range missing {
		of[i] = one.of
		if one.of.Path == spec.Output {
			own = i + 1
		}
	}
	posters, err := t.worker.config.Posters.Posters(t.ctx, t.folder, of)
	if err != nil && 0 < own && own < len(of) && t.ctx.Err() == nil {
		// An input may be the cause, because engines may support formats that FFmpeg does not. Try
		// without the inputs.
		posters, err = t.worker.config.Posters.Posters(t.ctx, t.folder, of[:own])
	}
	if err != nil {
		t.logger.Warn("cannot make the thumbnails", "error", err)
		return
	}
	for i, poster := range posters {
		missing[i].use(poster)
	}
}

// file returns the blob of the stored file that is used as an input. It returns "" if the file already has a
// thumbnail.
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
		t.logger.Warn("cannot look for the thumbnail of a file", "error", err)
	}
	return ""
}

func (t *thumbnails) store() {
	if t == nil {
		return
	}
	<-t.made
	for of, picture := range t.files {
		// If a file has been deleted, StoreThumbnail returns fault.NotFound.
		err := file.StoreThumbnail(t.ctx, t.worker.config.Blobs, of, picture)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.logger.Warn("cannot store the thumbnail of a file", "error", err)
		}
	}
	if len(t.pictures.Result) == 0 {
		return
	}
	name := t.job.ThumbnailsBlob()
	if _, err := t.worker.config.Blobs.Put(t.ctx, name, bytes.NewReader(t.pictures.Encode())); err != nil {
		t.logger.Warn("cannot store the thumbnails", "error", err)
		return
	}
	// If the job has been deleted, delete the pictures. Deleting a job deletes its record first.
	_, err := t.worker.config.Runs.Get(t.ctx, t.job.ID)
	if fault.Is(err, fault.NotFound) {
		err = t.worker.config.Blobs.Delete(t.ctx, name)
	}
	if err != nil {
		t.logger.Warn("cannot check whether the job was deleted", "error", err)
	}
}

func (t *thumbnails) end() {
	if t == nil {
		return
	}
	t.cancel()
	<-t.made
	if err := os.RemoveAll(t.folder); err != nil {
		t.logger.Error("cannot remove a scratch folder", "error", err)
	}
}
