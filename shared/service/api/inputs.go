package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
)

const emptyFile = "The file is empty."

var errFileTooLarge = errors.New("the file exceeds the upload limit")

type inputs struct {
	storedBlobs
	account    string
	jobID      string
	references []fileReference
	// noURLs means that no files are fetched from URLs.
	noURLs bool
	// copies is how many more jobs to submit with the same inputs.
	copies int
	// earlier returns the job of an earlier request with the same Idempotency-Key, or "".
	earlier func() string
	// clip is the input video's length, or 0.
	clip time.Duration
	// size and rate (frames per second) describe the file in the field "data". They are 0 if unknown.
	size catalog.Size
	rate float64
	// referenceSize is the size of the reference image, or 0.
	referenceSize catalog.Size
}

// take is a [takeFile]. The part may be a file reference or a URL (docs/contract/media.md#references).
func (in *inputs) take(ctx context.Context, p filePart) (*job.Input, *problem, error) {
	head := make([]byte, max(media.SniffLen, file.MaxReference+1))
	n, err := io.ReadFull(p.content, head)
	head = head[:n]
	whole := err == io.EOF || err == io.ErrUnexpectedEOF // from ReadFull; a truncated body has another error
	switch {
	case err != nil && !whole:
		return nil, nil, err
	case n == 0:
		wrong := valueProblem(p.name, nil, emptyFile)
		return nil, &wrong, nil
	case p.fileName == "" && !p.fetched && isURL(head):
		p.content = io.MultiReader(bytes.NewReader(head), p.content)
		return in.takeURL(ctx, p, func(p filePart) (*job.Input, *problem, error) { return in.take(ctx, p) })
	case whole && !p.fetched && file.IsReference(string(head)):
		return in.refer(ctx, p.field, p.name, string(head))
	}
	kind, known := sniff.Media(head)
	if !known || !accepts(p.field, kind) {
		wrong := unsupportedKind(p.name, p.field)
		return nil, &wrong, nil
	}

	input := &job.Input{Blob: in.service.Jobs.InputBlob(in.jobID, p.field.Name), MIME: kind.MIME}
	if p.fileName != "" {
		input.Name = file.CleanName(p.fileName)
	}
	limit := in.service.MaxUpload
	content := io.MultiReader(bytes.NewReader(head), p.content)
	input.Size, input.MD5, err = in.store(ctx, input.Blob, content, limit, errFileTooLarge)
	switch {
	case errors.Is(err, errFileTooLarge):
		wrong := fileTooLarge(p.name, limit)
		return nil, &wrong, nil
	case err != nil:
		return nil, nil, fmt.Errorf("store an input: %w", err)
	case in.full != nil:
		return input, nil, nil // the first request has checked the input
	}
	wrong, err := in.check(ctx, p.field, p.name, nil, input)
	return input, wrong, err
}

// refer checks a stored file, which copyReferences copies later.
func (in *inputs) refer(
	ctx context.Context, field *catalog.Field, name, reference string,
) (*job.Input, *problem, error) {
	unknown := valueProblem(name, reference, fmt.Sprintf("There is no file %s.", reference))
	stored, err := in.service.Files.Get(ctx, in.account, reference)
	if fault.Is(err, fault.NotFound) {
		return in.gone(ctx, field, reference, unknown)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find a referenced file: %w", err)
	}
	// The recorded type may be just the client's declaration.
	kind, known, err := typeOfBlob(ctx, in.service.Blobs, stored.Blob)
	switch {
	case fault.Is(err, fault.NotFound):
		return in.gone(ctx, field, reference, unknown) // deleted or expired in the meantime
	case err != nil:
		return nil, nil, fmt.Errorf("read a referenced file: %w", err)
	case !known || !accepts(field, kind):
		wrong := unsupportedKind(name, field)
		wrong.Input = reference
		return nil, &wrong, nil
	}
	input := &job.Input{
		Blob: in.service.Jobs.InputBlob(in.jobID, field.Name), Name: stored.Filename, MIME: kind.MIME, Size: stored.Size, MD5: stored.MD5,
		File: stored.Blob, Reference: reference,
	}
	in.references = append(in.references, fileReference{stored.Blob, input.Blob, unknown})
	wrong, err := in.check(ctx, field, name, reference, input)
	if fault.Is(err, fault.NotFound) {
		return in.gone(ctx, field, reference, unknown)
	}
	return input, wrong, err
}

// gone returns the problem for a reference to a missing file. If the request repeats a request that referred to the
// file, gone returns the earlier input instead, so that the retry gets the first response.
func (in *inputs) gone(
	ctx context.Context, field *catalog.Field, reference string, unknown problem,
) (*job.Input, *problem, error) {
	id := in.earlier()
	if id == "" {
		return nil, &unknown, nil
	}
	j, err := in.service.Jobs.Get(ctx, in.account, id)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, nil, fmt.Errorf("find the job of an earlier request: %w", err)
	}
	input := j.Request.Inputs[field.Name]
	if input.Reference != reference {
		return nil, &unknown, nil
	}
	in.full = problems{unknown} // reported unless there is an earlier response to return
	return &input, nil, nil
}

// fileReference is a stored file to be copied as an input, with the problem to report if the file has been deleted.
type fileReference struct {
	from, to string
	unknown  problem
}

// copyReferences copies the stored files, so that the job owns its inputs. It runs after all checks. The copies do
// not count as stored bytes, so a rejected request must not make any. Errors: problems if a file has been deleted.
func (in *inputs) copyReferences(ctx context.Context) error {
	for _, one := range in.references {
		in.names = append(in.names, one.to)
		if err := in.service.Blobs.Copy(ctx, one.from, one.to); fault.Is(err, fault.NotFound) {
			return problems{one.unknown}
		} else if err != nil {
			return fmt.Errorf("copy a referenced file: %w", err)
		}
	}
	return nil
}

// typeOfBlob returns fault.NotFound if the blob is gone.
func typeOfBlob(ctx context.Context, blobs blob.Store, name string) (media.Type, bool, error) {
	r, err := blobs.Open(ctx, name, 0, media.SniffLen)
	if err != nil {
		return media.Type{}, false, err
	}
	defer r.Close()
	head, err := io.ReadAll(r)
	kind, known := sniff.Media(head)
	return kind, known, err
}

func accepts(field *catalog.Field, kind media.Type) bool {
	if field.Type == catalog.ImageFile {
		return kind.Image
	}
	return kind.Video
}

// check checks the metadata against the limits. value is the input to report in a problem.
func (in *inputs) check(
	ctx context.Context, field *catalog.Field, name string, value any, input *job.Input,
) (*problem, error) {
	reader := blob.ReaderAt{Context: ctx, Store: in.service.Blobs, Name: cmp.Or(input.File, input.Blob)}
	info, err := media.Inspect(reader, input.Size, input.MIME)
	if err != nil {
		return nil, fmt.Errorf("inspect an input: %w", err)
	}
	within := media.CheckVideo
	if field.Type == catalog.ImageFile {
		within = media.CheckImage
	}
	var beyond *fault.Error
	if errors.As(within(info, in.service.Catalog.Limits), &beyond) {
		wrong := valueProblem(name, value, beyond.Message)
		return &wrong, nil
	}
	size := catalog.Size{Width: info.Width, Height: info.Height}
	switch field.Name {
	case catalog.DataField:
		in.clip, in.size, in.rate = info.Duration, size, info.FrameRate
	case catalog.ReferenceField:
		in.referenceSize = size
	}
	return nil, nil
}
