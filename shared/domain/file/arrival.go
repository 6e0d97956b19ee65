package file

import (
	"context"
	"fmt"
	"io"
	"strings"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/media"
)

// SignedBlobs is a blob store that takes the bytes of promised files by itself,
// by URLs that it has signed. It takes none but those with the size and the MD5
// that the URL was signed for.
type SignedBlobs interface {
	// Arrival tells what has come.
	//
	// Errors: fault.NotFound when nothing has.
	Arrival(ctx context.Context, name string) (Arrival, error)
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
}

// The name of a promised file's blob is made of the file's id, so that the bytes
// alone tell which file they are, and looks like no other's, so that a store can
// tell of the arrival of just these.
const (
	signedPrefix = "files/"
	// SignedSuffix ends the names of the blobs that signed URLs are for.
	SignedSuffix = ".signed"
)

func signedBlob(id string) string { return signedPrefix + id + SignedSuffix }

// Received makes the promised file known whose bytes have come to the blob. Bytes
// of no file, as that was deleted or its promise has ended, are removed, and so
// are those for which the account has no room. That the file is known already is
// no error.
//
// Errors: fault.NotFound for wrong bytes; fault.Limited for those that there is no
// room for.
func (s *Service) Received(ctx context.Context, blob string) error {
	name, ours := strings.CutSuffix(blob, SignedSuffix)
	id, below := strings.CutPrefix(name, signedPrefix)
	if !ours || !below || !IsReference(id) {
		return fmt.Errorf("file: %.200q is no blob of a promised file", blob)
	}
	f, err := s.Store.PendingUpload(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return s.Blobs.Delete(ctx, blob)
	}
	if err != nil {
		return fmt.Errorf("file: get the promise %s: %w", id, err)
	}
	if !f.Promised {
		return nil
	}
	_, err = s.publish(ctx, f)
	return err
}

// receive gives an account's promised file if its bytes are there, and makes it
// known.
//
// Errors: fault.NotFound.
func (s *Service) receive(ctx context.Context, account, id string) (File, error) {
	f, err := s.Store.PendingUpload(ctx, id)
	if err == nil && (f.Account != account || !f.Promised) {
		return File{}, unknown()
	}
	if err := s.read(err, unknown()); err != nil {
		return File{}, err
	}
	f, err = s.publish(ctx, f)
	if fault.Is(err, fault.Limited) {
		err = unknown()
	}
	return f, err
}

// publish makes a promised file known whose bytes the blob store has taken.
//
// Errors: fault.NotFound when they are not there, or are not those that were
// announced.
func (s *Service) publish(ctx context.Context, f File) (File, error) {
	arrived, err := s.Signed.Arrival(ctx, f.Blob)
	if err := s.read(err, unknown()); err != nil {
		return File{}, err
	}
	if arrived != (Arrival{f.Size, f.MD5}) {
		// The URL permits no such bytes. However they came, they are not left to
		// be taken for the file.
		if err := s.Blobs.Delete(ctx, f.Blob); err != nil {
			return File{}, fmt.Errorf("file: delete the wrong bytes of %s: %w", f.ID, err)
		}
		return File{}, unknown()
	}
	r, err := s.Signed.Open(ctx, f.Blob, 0, media.SniffLen)
	if err := s.read(err, unknown()); err != nil {
		return File{}, err
	}
	defer r.Close()
	head, err := io.ReadAll(r)
	if err != nil {
		return File{}, fmt.Errorf("file: read the bytes of %s: %w", f.ID, err)
	}
	mime, told := media.Detect(head)
	if !told {
		mime = ""
	}
	arrivedFile, err := s.Finalize(ctx, f, mime)
	if fault.Is(err, fault.Limited) {
		if err := s.Blobs.Delete(ctx, f.Blob); err != nil {
			return File{}, fmt.Errorf("file: delete the bytes of %s, which there is no room for: %w", f.ID, err)
		}
		return File{}, err
	}
	return arrivedFile, s.read(err, unknown())
}
