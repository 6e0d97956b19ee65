package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/platform/httpserver"
)

// When a request fails, its context may have ended, so deleting its blobs has a separate timeout.
const cleanTime = 10 * time.Second

// beginUpload admits an upload and returns the request body, limited to maxBody. Reading fails once
// the caller's credential becomes invalid. The caller must call endUpload. Errors: fault.Limited.
func (s *service) beginUpload(r *http.Request, who credential.Principal) (*file.Upload, *body, error) {
	upload, err := s.Intake.Begin(who.Account(), file.Allowance{Uploads: who.Tier.Uploads, Bytes: who.Tier.StoredBytes})
	if err != nil {
		return nil, nil, err
	}
	return upload, &body{
		source: r.Body, left: s.maxBody(), tooLarge: s.errBodyTooLarge(),
		check: func() error { return s.renew(r, who) },
	}, nil
}

// renew returns fault.Unauthorized if the credential is no longer valid.
func (s *service) renew(r *http.Request, who credential.Principal) error {
	err := s.Authenticator.Renew(r.Context(), who)
	if err != nil && !fault.Is(err, fault.Unauthorized) {
		if r.Context().Err() == nil {
			s.log(r, err) // the store failed; let the upload continue
		}
		return nil
	}
	return err
}

// endUpload releases an upload's reservation, unless a record has replaced it.
func (s *service) endUpload(r *http.Request, upload *file.Upload) {
	if err := upload.End(r.Context()); err != nil {
		s.log(r, err) // the reservation expires
	}
}

// storedBlobs tracks a request's blobs. discard deletes them unless kept is set.
type storedBlobs struct {
	service *service
	// upload counts the stored bytes.
	upload         *file.Upload
	unlessRepeated func(full error) error
	// full is the error to return unless the request is a retry. It is set in two cases: unlessRepeated ignored a
	// capacity error, so the blob was read but not stored, or a referenced file is gone.
	full  error
	names []string
	// kept means that a record may refer to the blobs.
	kept bool
}

// store writes the content to the named blob and returns its size and its MD5 in hex. Errors: tooLarge if the content
// exceeds the limit, which is in bytes; errors from the content, unchanged.
func (b *storedBlobs) store(
	ctx context.Context, name string, content io.Reader, limit int64, tooLarge error,
) (size int64, md5 string, err error) {
	b.names = append(b.names, name)
	digest := newDigestReader(content, limit, tooLarge)
	size, err = b.service.Blobs.Put(ctx, name, b.upload.Reader(ctx, digest))
	if fault.Is(err, fault.Limited) && b.unlessRepeated != nil && b.unlessRepeated(err) == nil {
		b.full = err
		_, err = io.Copy(io.Discard, digest)
		size = limit - digest.left
	}
	return size, digest.sum(), err
}

func (b *storedBlobs) discard(ctx context.Context) {
	if b.kept || len(b.names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	for _, name := range b.names {
		if err := b.service.Blobs.Delete(ctx, name); err != nil {
			// The sweeper or the bucket's lifecycle rule deletes the blob later.
			b.service.Logger.LogAttrs(ctx, slog.LevelWarn, "cannot delete an uploaded blob",
				slog.String("request_id", httpserver.RequestID(ctx)), slog.String("blob", name), slog.Any("error", err))
		}
	}
}
