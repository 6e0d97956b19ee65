package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/media"
	"cutroom/shared/platform/httpserver"
)

// Uploads is the group that takes the bytes of large files by URLs of this
// service (docs/contract/media.md#large-uploads). Elsewhere the blob store takes
// them itself.
func Uploads(s *service) []route {
	return []route{{method: http.MethodPut, path: uploadsPath + "{file_id}", access: public, handle: s.putUpload}}
}

// putUpload is PUT /v1/uploads/{file_id}. It answers as an object store does:
// without a body, and with the MD5 as the entity tag.
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
	// The URL has a life of its own, but none beyond that of the key behind it.
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
	upload.Keep(f, s.Files.Keep)
	told, err := s.takePromised(ctx, b, upload, f)
	if err != nil {
		return err
	}
	upload.Arrived()
	f.Room = upload.Room()
	// The bytes are there: from here on it changes nothing that the client
	// leaves.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	if _, err := s.Files.Finalize(ctx, f, told); err != nil {
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Limited) {
			// The promise ended, or the file came by another request and was
			// deleted, while these bytes arrived; or there is no room for them.
			(&storedBlobs{service: s, names: []string{f.Blob}}).discard(ctx)
		}
		if fault.Is(err, fault.NotFound) {
			return fault.Wrap(err, fault.NotFound, "File not found.")
		}
		return err
	}
	upload.Settled()
	w.Header().Set("ETag", `"`+f.MD5+`"`)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

// takePromised stores the bytes of a promised file and gives the type that they
// tell, "" when they tell none. Unless they are just those that were announced,
// nothing is stored; what another request has stored of the file stays.
//
// Errors: problems; those of the body, the upload and the store.
func (s *service) takePromised(ctx context.Context, b *body, upload *file.Upload, f file.File) (string, error) {
	b.left, b.tooLarge = f.Size, problems{bodyProblem(fmt.Sprintf("The body is longer than the %d bytes that were announced.", f.Size))}
	head, err := readHead(b)
	if err != nil {
		return "", err
	}
	announced := newAnnouncedReader(upload.Reader(ctx, io.MultiReader(bytes.NewReader(head), b)), f)
	defer announced.close()
	_, err = s.Blobs.Put(ctx, f.Blob, announced)
	switch {
	case b.failure != nil:
		// What the store says is of no use: a body that broke off may have ended
		// the context as well.
		return "", b.failure
	case err != nil:
		return "", fmt.Errorf("store a promised file: %w", err)
	}
	if detected, told := media.Detect(head); told {
		return detected, nil
	}
	return "", nil
}

func wrongSize(f file.File, size int64) problems {
	return problems{bodyProblem(fmt.Sprintf("The body has %d bytes; %d were announced.", size, f.Size))}
}

// announcedReader reads the bytes of a file, and fails at their end unless they
// are those that were announced: whoever reads from it never sees wrong bytes
// whole. Whoever makes one closes it.
type announcedReader struct {
	digest *digestReader
	file   file.File
	read   int64
	// end is what a Read at the end gives, nil before it.
	end error
}

func newAnnouncedReader(source io.Reader, f file.File) *announcedReader {
	return &announcedReader{digest: newDigestReader(source, f.Size, errFileTooLarge), file: f}
}

// Read gives bytes of the source.
//
// Errors: those of the source; problems.
func (a *announcedReader) Read(p []byte) (int, error) {
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

// verify gives io.EOF when what was read is what was announced.
func (a *announcedReader) verify() error {
	md5 := a.digest.sum()
	switch {
	case a.read != a.file.Size:
		return wrongSize(a.file, a.read)
	case md5 != a.file.MD5:
		return problems{bodyProblem(fmt.Sprintf("The body's MD5 is %s; %s was announced.", md5, a.file.MD5))}
	}
	return io.EOF
}

// close ends the hashing.
func (a *announcedReader) close() {
	if a.end == nil {
		a.digest.stop()
	}
}
