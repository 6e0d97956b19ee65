package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/platform/httpserver"
)

// Uploads receives large files at this service's own URLs (docs/contract/media.md#large-uploads).
// With object storage, clients upload files there instead.
func Uploads(s *service) []route {
	return []route{{method: http.MethodPut, path: uploadsPath + "{file_id}", access: public, handle: s.putUpload}}
}

// putUpload responds like an object store, with an empty body and the MD5 as the ETag.
func (s *service) putUpload(w http.ResponseWriter, r *http.Request, _ call) error {
	ctx, id := r.Context(), r.PathValue("file_id")
	if err := s.UploadURLs.check(id, readQuery(r.URL.RawQuery)); err != nil {
		return err
	}
	f, err := s.Files.PendingUpload(ctx, id)
	if err != nil {
		return err
	}
	httpserver.SetAccount(ctx, f.Account)
	// The caller needs no key, but the key that announced the file must not have been revoked.
	who, err := s.Authenticator.Holder(ctx, f.Account, f.Key)
	if err != nil {
		return err
	}
	if r.ContentLength >= 0 && r.ContentLength != f.Size {
		return wrongSize(f, r.ContentLength)
	}
	upload, b, err := s.beginUpload(r, who)
	if err != nil {
		return err
	}
	defer s.endUpload(r, upload)
	upload.SetPending(f, s.Files.Extend)
	detected, err := s.storePending(ctx, b, upload, f)
	if err != nil {
		return err
	}
	upload.Arrived()
	f.Reserved = upload.Reservation()
	// The bytes have been stored, so continue even if the client disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	if _, err := s.Files.Finalize(ctx, f, detected); err != nil {
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Limited) {
			// Delete the bytes, because the account's storage is full, or the pending file has expired or been
			// deleted in the meantime.
			(&storedBlobs{service: s, names: []string{f.Blob}}).discard(ctx)
		}
		if fault.Is(err, fault.NotFound) {
			return fault.Wrap(err, fault.NotFound, "%s", file.ErrNotFound.Message)
		}
		return err
	}
	upload.Recorded()
	w.Header().Set("ETag", `"`+f.MD5+`"`)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

func (s *service) storePending(ctx context.Context, b *body, upload *file.Upload, f file.File) (string, error) {
	b.left, b.tooLarge = f.Size,
		problems{bodyProblem(fmt.Sprintf("The body is longer than the announced %d bytes.", f.Size))}
	head, err := readHead(b)
	if err != nil {
		return "", err
	}
	announced := newAnnouncedReader(upload.Reader(ctx, io.MultiReader(bytes.NewReader(head), b)), f)
	defer announced.close()
	_, err = s.Blobs.Put(ctx, f.Blob, announced)
	switch {
	case b.failure != nil:
		// Prefer the body's error, because a truncated body may also have cancelled the context.
		return "", b.failure
	case err != nil:
		return "", fmt.Errorf("store a pending file: %w", err)
	}
	if detected, known := sniff.Any(head); known {
		return detected, nil
	}
	return "", nil
}

func wrongSize(f file.File, size int64) problems {
	return problems{bodyProblem(fmt.Sprintf("The body has %d bytes instead of the announced %d.", size, f.Size))}
}

// verifyingReader fails at the end if the bytes do not match the announcement, so that the store
// never keeps wrong bytes as a complete file. The caller must close it.
type verifyingReader struct {
	digest *digestReader
	file   file.File
	read   int64
	end    error
}

func newAnnouncedReader(source io.Reader, f file.File) *verifyingReader {
	return &verifyingReader{digest: newDigestReader(source, f.Size, errFileTooLarge), file: f}
}

func (a *verifyingReader) Read(p []byte) (int, error) {
	if a.end != nil {
		return 0, a.end
	}
	n, err := a.digest.Read(p)
	a.read += int64(n)
	if err == io.EOF {
		a.end = a.verify()
		return n, a.end
	}
	return n, err
}

func (a *verifyingReader) verify() error {
	md5 := a.digest.sum()
	switch {
	case a.read != a.file.Size:
		return wrongSize(a.file, a.read)
	case md5 != a.file.MD5:
		return problems{bodyProblem(fmt.Sprintf("The body's MD5 is %s instead of the announced %s.", md5, a.file.MD5))}
	}
	return io.EOF
}

func (a *verifyingReader) close() {
	if a.end == nil {
		a.digest.stop()
	}
}
