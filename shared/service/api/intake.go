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

// cleanTime is how long the blobs of a request that failed may take to be
// deleted. It begins after the request, whose own time may be over.
const cleanTime = 10 * time.Second

// beginUpload lets an upload of the caller begin, and gives the body that it comes
// by, of at most the largest size: a caller whose key is revoked, or whose token
// expires, sends no more. Its caller ends the upload by endUpload.
//
// Errors: fault.Limited.
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

// renew looks again whether a caller may send.
//
// Errors: fault.Unauthorized.
func (s *service) renew(r *http.Request, who credential.Principal) error {
	err := s.Authenticator.Renew(r.Context(), who)
	if err != nil && !fault.Is(err, fault.Unauthorized) {
		if r.Context().Err() == nil {
			s.log(r, err) // trouble of the store is not the caller's
		}
		return nil
	}
	return err
}

// endUpload gives back what an upload has taken and no record has.
func (s *service) endUpload(r *http.Request, upload *file.Upload) {
	if err := upload.End(r.Context()); err != nil {
		s.log(r, err) // it runs out
	}
}

// storedBlobs are the blobs that a request has stored. They go with the request
// unless they are kept.
type storedBlobs struct {
	service *service
	// upload is what brings them, and pardon gives a refusal of theirs, unless the
	// request makes nothing, as it was accepted before.
	upload *file.Upload
	pardon func(refusal error) error
	// pardoned is a refusal that was: a blob was read to its end, and is not stored.
	pardoned error
	names    []string
	// kept means that the blobs may belong to a record.
	kept bool
}

// store puts a file of at most limit bytes into the blob with the name, which
// discard deletes from now on, and gives its size in bytes and its MD5 in hex.
//
// Errors: tooLarge; those of the content, the upload and the store.
func (b *storedBlobs) store(ctx context.Context, name string, content io.Reader, limit int64, tooLarge error) (size int64, md5 string, err error) {
	b.names = append(b.names, name)
	digest := newDigestReader(content, limit, tooLarge)
	size, err = b.service.Blobs.Put(ctx, name, b.upload.Reader(ctx, digest))
	if fault.Is(err, fault.Limited) && b.pardon != nil && b.pardon(err) == nil {
		b.pardoned = err
		_, err = io.Copy(io.Discard, digest)
		size = limit - digest.left
	}
	return size, digest.sum(), err
}

// discard deletes the blobs unless they are kept.
func (b *storedBlobs) discard(ctx context.Context) {
	if b.kept || len(b.names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	for _, name := range b.names {
		if err := b.service.Blobs.Delete(ctx, name); err != nil {
			// The sweeper, or the bucket's lifecycle, deletes it later.
			b.service.Logger.LogAttrs(ctx, slog.LevelWarn, "an uploaded blob was not deleted",
				slog.String("request_id", httpserver.RequestID(ctx)), slog.String("blob", name), slog.Any("error", err))
		}
	}
}
