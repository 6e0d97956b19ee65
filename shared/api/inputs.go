package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"cutroom/shared/blob"
	"cutroom/shared/fault"
	"cutroom/shared/file"
	"cutroom/shared/httpserver"
	"cutroom/shared/job"
	"cutroom/shared/media"
	"cutroom/shared/model"
)

// cleanTime is how long the blobs of a request that failed may take to be
// deleted. It begins after the request, whose own time may be over.
const cleanTime = 10 * time.Second

var errFileTooLarge = errors.New("the file is larger than an upload may be")

// inputs stores the files of one job to be.
type inputs struct {
	service *service
	account string
	jobID   string
	stored  []string
	// kept means that the blobs may belong to a job.
	kept bool
}

// discard deletes what was stored, unless it is kept.
func (in *inputs) discard(ctx context.Context) {
	if in.kept || len(in.stored) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	for _, name := range in.stored {
		if err := in.service.Blobs.Delete(ctx, name); err != nil {
			// The sweeper, or the bucket's lifecycle, deletes it later.
			in.service.Logger.LogAttrs(ctx, slog.LevelWarn, "an input was not deleted",
				slog.String("request_id", httpserver.RequestID(ctx)), slog.String("blob", name), slog.Any("error", err))
		}
	}
}

// blob gives the name of a field's blob, which discard deletes from now on.
func (in *inputs) blob(field *model.Field) string {
	name := job.InputBlob(in.jobID, field.Name)
	in.stored = append(in.stored, name)
	return name
}

// take stores the content of a file part, or copies the stored file that it
// refers to (decisions.md, "Forms"). It is a [takeFile].
//
// Errors: those of content and of the stores.
func (in *inputs) take(ctx context.Context, field *model.Field, name string, content io.Reader) (*job.Input, *problem, error) {
	head := make([]byte, max(media.SniffLen, file.MaxReference+1))
	n, err := io.ReadFull(content, head)
	head = head[:n]
	whole := err == io.EOF || err == io.ErrUnexpectedEOF // ReadFull's own, not a body's that broke off
	switch {
	case err != nil && !whole:
		return nil, nil, err
	case n == 0:
		wrong := valueProblem(name, nil, "The file is empty.")
		return nil, &wrong, nil
	case whole && file.IsReference(string(head)):
		return in.refer(ctx, field, name, string(head))
	}
	kind, known := media.Sniff(head)
	if !known || !accepts(field, kind) {
		wrong := wrongKind(name, field.Type)
		return nil, &wrong, nil
	}

	input := &job.Input{Blob: in.blob(field), MIME: kind.MIME}
	digest := newDigestReader(io.MultiReader(bytes.NewReader(head), content), in.service.MaxUpload, errFileTooLarge)
	input.Size, err = in.service.Blobs.Put(ctx, input.Blob, digest)
	input.MD5 = digest.sum()
	switch {
	case errors.Is(err, errFileTooLarge):
		wrong := fileTooLarge(name, in.service.MaxUpload)
		return nil, &wrong, nil
	case err != nil:
		return nil, nil, fmt.Errorf("store an input: %w", err)
	}
	wrong, err := in.check(ctx, field, name, nil, input)
	return input, wrong, err
}

// refer copies a stored file, so that the job owns what it works on whatever
// becomes of the file.
func (in *inputs) refer(ctx context.Context, field *model.Field, name, reference string) (*job.Input, *problem, error) {
	unknown := valueProblem(name, reference, fmt.Sprintf("There is no file %s.", reference))
	if in.service.Files == nil {
		return nil, &unknown, nil
	}
	stored, err := in.service.Files.Get(ctx, in.account, reference)
	if fault.Is(err, fault.NotFound) {
		return nil, &unknown, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find a referenced file: %w", err)
	}
	kind, known := media.Find(stored.MIME)
	if !known || !accepts(field, kind) {
		wrong := wrongKind(name, field.Type)
		wrong.Input = reference
		return nil, &wrong, nil
	}
	input := &job.Input{Blob: in.blob(field), MIME: stored.MIME, Size: stored.Size}
	if err := in.service.Blobs.Copy(ctx, stored.Blob, input.Blob); fault.Is(err, fault.NotFound) {
		return nil, &unknown, nil // deleted, or expired, a moment ago
	} else if err != nil {
		return nil, nil, fmt.Errorf("copy a referenced file: %w", err)
	}
	wrong, err := in.check(ctx, field, name, reference, input)
	return input, wrong, err
}

// accepts reports whether a field takes files of the kind.
func accepts(field *model.Field, kind media.Type) bool {
	if field.Type == model.ImageFile {
		return kind.Image
	}
	return kind.Video
}

// check looks at what the file's header tells, as far as it is within the
// limits (decisions.md, "Models"). The value is as a problem shows it.
func (in *inputs) check(ctx context.Context, field *model.Field, name string, value any, input *job.Input) (*problem, error) {
	reader := blob.ReaderAt{Context: ctx, Store: in.service.Blobs, Name: input.Blob}
	info, err := media.Inspect(reader, input.Size, input.MIME)
	if err != nil {
		return nil, fmt.Errorf("inspect an input: %w", err)
	}
	within := media.CheckVideo
	if field.Type == model.ImageFile {
		within = media.CheckImage
	}
	var beyond *fault.Error
	if errors.As(within(info, in.service.Catalog.Limits), &beyond) {
		wrong := valueProblem(name, value, beyond.Message)
		return &wrong, nil
	}
	return nil, nil
}
