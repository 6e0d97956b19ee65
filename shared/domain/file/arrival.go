package file

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media"
)

// SignedBlobs is a blob store that itself receives the bytes of pending files at signed URLs. It
// accepts only bytes of the signed size and MD5.
type SignedBlobs interface {
	// Errors: fault.NotFound if no bytes have arrived yet.
	Arrival(ctx context.Context, name string) (Arrival, error)
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
}

// SignedSuffix is the suffix of pending files' blob names. No other blob has it, so a store can restrict
// notifications to these blobs.
const SignedSuffix = ".signed"

// Received finalizes the pending file whose bytes have arrived in the blob. If the file is no longer pending, or
// the account has too little storage, it deletes the bytes. Calling it again succeeds.
//
// Errors: fault.NotFound if the bytes are wrong; fault.Limited if the account's storage is full.
func (s *Service) Received(ctx context.Context, blob string) error {
	name, ours := strings.CutSuffix(blob, SignedSuffix)
	id := path.Base(name)
	if !ours || !IsReference(id) || name != BlobOf(id) && name != spreadBlobOf(id) {
		return fmt.Errorf("file: %.200q is not the name of a pending file's blob", blob)
	}
	f, err := s.config.Store.PendingUpload(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return s.config.Blobs.Delete(ctx, blob)
	}
	if err != nil {
		return fmt.Errorf("file: get the pending file %s: %w", id, err)
	}
	if !f.Pending {
		return nil
	}
	_, err = s.publish(ctx, f)
	return err
}

// Errors: fault.NotFound.
func (s *Service) receive(ctx context.Context, account, id string) (File, error) {
	f, err := s.config.Store.PendingUpload(ctx, id)
	if err == nil && f.Account != account {
		return File{}, ErrNotFound
	}
	if err == nil && !f.Pending {
		// Another process has just finalized the file.
		f, err = s.config.Store.Get(ctx, account, id, s.config.Now())
		return f, s.read(err, ErrNotFound)
	}
	if err := s.read(err, ErrNotFound); err != nil {
		return File{}, err
	}
	f, err = s.publish(ctx, f)
	if fault.Is(err, fault.Limited) {
		err = ErrNotFound
	}
	return f, err
}

// publish finalizes a pending file whose bytes the blob store has received.
//
// Errors: fault.NotFound if the bytes are missing or wrong.
func (s *Service) publish(ctx context.Context, f File) (File, error) {
	arrived, err := s.config.Signed.Arrival(ctx, f.Blob)
	if err := s.read(err, ErrNotFound); err != nil {
		return File{}, err
	}
	if arrived != (Arrival{f.Size, f.MD5}) {
		// These are not the announced bytes. Delete them, so that the client can upload the right ones.
		if err := s.config.Blobs.Delete(ctx, f.Blob); err != nil {
			return File{}, fmt.Errorf("file: delete the wrong bytes of %s: %w", f.ID, err)
		}
		return File{}, ErrNotFound
	}
	r, err := s.config.Signed.Open(ctx, f.Blob, 0, media.SniffLen)
	if err := s.read(err, ErrNotFound); err != nil {
		return File{}, err
	}
	defer r.Close()
	head, err := io.ReadAll(r)
	if err != nil {
		return File{}, fmt.Errorf("file: read the bytes of %s: %w", f.ID, err)
	}
	mime, known := s.config.Detect(head)
	if !known {
		mime = ""
	}
	arrivedFile, err := s.Finalize(ctx, f, mime)
	if fault.Is(err, fault.Limited) {
		if err := s.config.Blobs.Delete(ctx, f.Blob); err != nil {
			return File{}, fmt.Errorf("file: delete the bytes of %s, which exceed the account's storage: %w", f.ID, err)
		}
		return File{}, err
	}
	return arrivedFile, s.read(err, ErrNotFound)
}
