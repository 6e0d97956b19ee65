package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/idempotency"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/platform/httpserver"
)

const (
	fileField     = "file"
	lifetimeField = "ttl_seconds"
	persistent    = "persistent"
)

func uploadForm() *catalog.Form {
	return &catalog.Form{Name: "upload", Fields: []catalog.Field{
		{
			Name: fileField, Type: catalog.AnyFile, Required: true,
			Description: "The bytes to store, of any kind.",
		},
		{
			Name: lifetimeField, Type: catalog.Text, Default: fmt.Sprint(int64(file.DefaultLifetime / time.Second)),
			Description: fmt.Sprintf("How long the file is kept, %d to %d seconds, or `%s` to keep it until it is deleted.",
				minLifetime, maxLifetime, persistent),
		},
	}}
}

// createFile accepts a form that contains the file, or JSON that announces a large file.
func (s *service) createFile(w http.ResponseWriter, r *http.Request, c call) error {
	if r.ContentLength > s.maxBody() {
		return s.errBodyTooLarge()
	}
	kind, parameters, err := contentType(r)
	switch {
	case err == nil && kind == "application/json":
		return s.announceFile(w, r, c)
	case err == nil && kind == "multipart/form-data" && parameters["boundary"] != "":
		answer, err := s.upload(w, r, c, parameters["boundary"])
		if err != nil {
			return err
		}
		writeBody(w, http.StatusOK, answer)
		return nil
	}
	return problems{bodyProblem("The body must be multipart/form-data with a boundary, or application/json to announce " +
		"a large file.")}
}

func contentType(r *http.Request) (kind string, parameters map[string]string, err error) {
	declared := r.Header.Get("Content-Type")
	if httpserver.HasManyParameters(declared) {
		return "", nil, errors.New("api: the media type has too many parameters")
	}
	return mime.ParseMediaType(declared)
}

// upload stores the file from a form, records it, and returns the response body. If that fails, it deletes the stored
// bytes, unless the file may have been recorded. A retry gets the first request's response, even if the file is gone.
// Errors: problems; as for s.once and file.Service.
func (s *service) upload(w http.ResponseWriter, r *http.Request, c call, boundary string) (answer []byte, err error) {
	ctx := r.Context()
	upload, b, err := s.beginUpload(r, c.who)
	if err != nil {
		return nil, err
	}
	defer s.endUpload(r, upload)
	unlessRepeated := func(refusal error) error { return s.unlessRepeated(r, c, refusal) }
	blobs := &storedBlobs{service: s, upload: upload, unlessRepeated: unlessRepeated}
	defer blobs.discard(ctx)

	f := file.File{Account: c.who.Account(), Key: c.who.Key.ID}
	if err := s.readUpload(ctx, b, boundary, blobs, &f); err != nil {
		return nil, err
	}
	if f, err = s.Files.Name(f); err != nil {
		return nil, err
	}
	earlier, err := s.once(w, r, c, creation{
		asked:    askedOf("upload", f),
		resource: f.ID, made: s.madeFile(f.Account),
		create: func(ctx context.Context) ([]byte, error) {
			if blobs.full != nil {
				return nil, blobs.full
			}
			blobs.kept = true
			f.Reserved = upload.Reservation()
			created, err := s.Files.Create(ctx, f, c.who.Tier.StoredBytes)
			blobs.kept = !rejected(err)
			if err != nil {
				return nil, err
			}
			upload.Recorded()
			answer, err = encodeJSON(newFileBody(created))
			return answer, err
		},
	})
	if earlier != nil {
		return earlier.Response, nil
	}
	return answer, err
}

func (s *service) readUpload(
	ctx context.Context, b *body, boundary string, blobs *storedBlobs, f *file.File,
) error {
	sub, err := readMultipart(b, boundary, uploadForm().Field, func(p filePart) (*job.Input, *problem, error) {
		wrong, err := s.takeUpload(ctx, p, blobs, f)
		return nil, wrong, err
	})
	if err != nil {
		return err
	}
	blobs.upload.Arrived()
	var found problems
	if carried := sub[fileField]; carried == nil {
		found = problems{missing(fileField)}
	} else {
		found = carried.problems
	}
	f.Lifetime = file.DefaultLifetime
	if carried := sub[lifetimeField]; carried != nil {
		var wrong *problem
		found = append(found, carried.problems...)
		if f.Lifetime, wrong = parseLifetime(carried.text); wrong != nil {
			found = append(found, *wrong)
		}
	}
	if len(found) > 0 {
		return found
	}
	return nil
}

func askedOf(way string, f file.File) any {
	return []any{way, f.Filename, f.MIME, f.MD5, f.Size, f.Lifetime}
}

// madeFile returns a function that finds the file created by an earlier request.
func (s *service) madeFile(account string) idempotency.Made {
	return func(ctx context.Context, id string) ([]byte, bool, error) {
		f, err := s.Files.Get(ctx, account, id)
		if fault.Is(err, fault.NotFound) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		answer, err := encodeJSON(newFileBody(f))
		return answer, err == nil, err
	}
}

func (s *service) takeUpload(ctx context.Context, p filePart, blobs *storedBlobs, f *file.File) (*problem, error) {
	head, err := readHead(p.content)
	if err != nil {
		return nil, err
	}
	if len(head) == 0 {
		wrong := valueProblem(p.name, nil, emptyFile)
		return &wrong, nil
	}
	if f.Blob, err = s.Files.NewBlob(); err != nil {
		return nil, err
	}
	content := io.MultiReader(bytes.NewReader(head), p.content)
	f.Size, f.MD5, err = blobs.store(ctx, f.Blob, content, s.MaxUpload, errFileTooLarge)
	switch {
	case errors.Is(err, errFileTooLarge):
		wrong := fileTooLarge(p.name, s.MaxUpload)
		return &wrong, nil
	case err != nil:
		return nil, fmt.Errorf("store a file: %w", err)
	}
	f.Filename = p.fileName
	f.MIME = typeOf(head, p.declared)
	return nil, nil
}

func readHead(content io.Reader) ([]byte, error) {
	head := make([]byte, media.SniffLen)
	n, err := io.ReadFull(content, head)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // from ReadFull; a truncated body has another error
		err = nil
	}
	return head[:n], err
}

const undeclared = "application/octet-stream"

// typeOf detects the type. If that fails, it returns the declared type (docs/contract/media.md#file-reference).
func typeOf(head []byte, declared string) string {
	detected, known := sniff.Any(head)
	if known {
		return detected
	}
	if httpserver.HasManyParameters(declared) {
		return detected
	}
	declared, _, err := mime.ParseMediaType(declared)
	if err == nil && mimeForm().MatchString(declared) && declared != undeclared {
		return declared
	}
	return detected
}

// In seconds.
const (
	minLifetime = int64(file.MinLifetime / time.Second)
	maxLifetime = int64(file.MaxLifetime / time.Second)
)

// parseLifetime returns 0 for a file that is kept until it is deleted.
func parseLifetime(text string) (time.Duration, *problem) {
	if text == persistent {
		return 0, nil
	}
	least, most := minLifetime, maxLifetime
	number, wrong := parse(&catalog.Field{Type: catalog.Integer, Min: &least, Max: &most},
		&sent{name: lifetimeField, text: text})
	if wrong == nil {
		return time.Duration(number.(int64)) * time.Second, nil
	}
	if wrong.Type == "int_parsing" {
		wrong.Message = "Input should be '" + persistent + "' or a valid integer, unable to parse string as an integer"
	}
	return 0, wrong
}
