package file

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
)

// Lifetimes of an upload (docs/contract/media.md#files).
const (
	MinLifetime     = time.Minute
	MaxLifetime     = 30 * 24 * time.Hour
	DefaultLifetime = 24 * time.Hour
)

const (
	// MaxSignedSize is how large a file may be that arrives by a signed URL, in
	// bytes (docs/contract/media.md#large-uploads).
	MaxSignedSize = 5_000_000_000
	// SignedTime is how long a signed URL takes a request that brings bytes.
	SignedTime = 30 * time.Minute
	// LeastPromise is what an announced file that is larger counts towards its
	// account's storage until more than that has arrived, in bytes.
	LeastPromise = 1 << 20
	// slowest is how fast the bytes of an announced file have to come to a blob
	// store that takes them by itself, in bytes per second: 2 Mbit/s.
	slowest = 250_000
	// kept is how long what an upload has is kept for it at least: the smallest file
	// may take that long to come, and what a process keeps outlives it by that.
	kept = 10 * time.Minute
)

// KeepEvery is how often what an upload under way has is renewed at least.
const KeepEvery = kept / 5

// SignedUntil is until when a signed URL takes a request that brings the bytes of
// a promised file.
func (f File) SignedUntil() time.Time { return f.CreatedAt.Add(SignedTime) }

// arrivalTime is how long the bytes of a file may take to come.
func arrivalTime(size int64) time.Duration {
	return kept + time.Duration(size/slowest)*time.Second
}

// Blobs is what the service needs of a blob store.
type Blobs interface {
	Delete(ctx context.Context, name string) error
}

// Config is what a [Service] is made of.
type Config struct {
	Store   Store
	Blobs   Blobs
	IDs     *IDs
	Cursors Cursors
	Now     func() time.Time
	// Signed is the blob store where it takes the bytes of promised files by
	// itself; nil where this service takes them.
	Signed SignedBlobs
	// Promises puts off the end of a promise whose bytes begin to arrive, where
	// this service takes them; nil where it does not.
	Promises interface {
		Extend(ctx context.Context, id string, until time.Time) error
	}
}

// Service stores, lists and deletes files for the accounts that they belong to.
type Service struct{ Config }

// NewService makes a service.
func NewService(c Config) *Service { return &Service{c} }

// unknown is the one answer for a file that does not exist, has expired, has
// not arrived, or is another account's.
func unknown() error { return fault.New(fault.NotFound, "File not found.") }

// NewBlob gives a name for the bytes of an upload. The file's own id is drawn
// when they are there, so that files sort by when they came to be.
func (s *Service) NewBlob() (string, error) {
	id, _, err := s.IDs.New()
	return "files/" + id, err
}

// Name gives a file that is to be created or announced its id and times, for a
// caller who has to know them before.
func (s *Service) Name(f File) (File, error) {
	err := s.name(&f)
	return f, err
}

// Create records a file whose bytes are in its blob, gives it its id and times
// where Name has not, and returns it. The caller fills Account, Key, Filename, MIME, Size, MD5, Blob
// and Lifetime; limit is the number of bytes that the account may store, 0 for
// any. On a definite refusal the blob is the caller's to delete.
//
// Errors: fault.Limited when the account's storage is full.
func (s *Service) Create(ctx context.Context, f File, limit int64) (File, error) {
	if err := s.name(&f); err != nil {
		return File{}, err
	}
	return f, s.create(ctx, f, limit)
}

// CreatePending records a file whose bytes will arrive by a signed URL: nobody
// knows it until Finalize. The caller fills what it does for Create, with what the
// client declares; Blob is given by the service. Until more of its bytes have
// arrived the file counts LeastPromise, or its size where that is less. An account
// may wait for the bytes of most files at once (0 is any number).
//
// Errors: as Create; fault.Limited when the account waits for as many.
func (s *Service) CreatePending(ctx context.Context, f File, limit int64, most int) (File, error) {
	if err := s.name(&f); err != nil {
		return File{}, err
	}
	f.Blob, f.Promised, f.UploadUntil = signedBlob(f.ID), true, f.SignedUntil()
	if s.Signed != nil {
		// Nobody sees the bytes arrive: that they might is reason to keep the promise.
		f.UploadUntil = f.UploadUntil.Add(arrivalTime(f.Size))
	}
	f.Promise = PendingUpload{Bytes: min(f.Size, LeastPromise), Limit: limit, Most: most}
	if limit > 0 && f.Size > limit {
		return File{}, StorageFull(limit)
	}
	return f, s.create(ctx, f, limit)
}

func (s *Service) create(ctx context.Context, f File, limit int64) error {
	err := s.Store.Create(ctx, f, limit)
	switch {
	case errors.Is(err, ErrManyPromises):
		many := fault.New(fault.Limited, "The account has announced %d files whose bytes have not arrived, which is its limit. "+
			"Send their bytes, or wait until their URLs end.", f.Promise.Most)
		many.RetryAfter = time.Minute
		return many
	case fault.Is(err, fault.Limited):
		return StorageFull(limit)
	}
	return err
}

// StorageFull is the error of what does not fit into the storage of its account,
// which may hold so many bytes.
func StorageFull(limit int64) error {
	full := fault.New(fault.Limited,
		"The account's storage is full: it may hold %d bytes. Delete files, or wait until some expire.", limit)
	full.RetryAfter = time.Minute
	return full
}

// name draws a file's id and sets its times, unless it has them.
func (s *Service) name(f *File) error {
	if f.ID != "" {
		return nil
	}
	id, created, err := s.IDs.New()
	if err != nil {
		return err
	}
	f.ID, f.CreatedAt = id, created.Truncate(time.Millisecond)
	f.Filename = CleanName(f.Filename)
	f.ExpiresAt = f.expiry(f.CreatedAt)
	return nil
}

func (f File) expiry(from time.Time) time.Time {
	if f.Lifetime == 0 {
		return time.Time{}
	}
	return from.Add(f.Lifetime)
}

// PendingUpload gives a promised file that may take bytes now.
//
// Errors: fault.Conflict when its bytes are there; fault.NotFound when there is
// none, or its time is over.
func (s *Service) PendingUpload(ctx context.Context, id string) (File, error) {
	f, err := s.Store.PendingUpload(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return File{}, unknown()
	}
	if err != nil {
		return File{}, fmt.Errorf("file: get the promise %s: %w", id, err)
	}
	if err := s.takesBytes(f); err != nil {
		return File{}, err
	}
	return f, s.Keep(ctx, f)
}

// takesBytes reports whether what was promised may take bytes now, by the error.
//
// Errors: as Promised.
func (s *Service) takesBytes(f File) error {
	switch {
	case !f.Promised && !f.Expired(s.Now()):
		return fault.New(fault.Conflict, "The file's bytes are there already.")
	case !f.Promised, !s.Now().Before(f.UploadUntil):
		return unknown()
	}
	return nil
}

// Keep puts off the end of a promise whose bytes are arriving: it is called when
// they begin to, and every KeepEvery.
//
// Errors: fault.Conflict when another request has brought them meanwhile;
// fault.NotFound when the promise has ended.
func (s *Service) Keep(ctx context.Context, f File) error {
	if s.Promises == nil {
		return nil
	}
	until := s.Now().UTC().Truncate(time.Millisecond).Add(kept)
	err := s.Promises.Extend(ctx, f.ID, until)
	if fault.Is(err, fault.NotFound) {
		if f, err = s.Store.PendingUpload(ctx, f.ID); err == nil {
			err = s.takesBytes(f)
		}
	}
	if fault.Is(err, fault.Conflict) {
		return err
	}
	return s.read(err, unknown())
}

// Finalize makes a promised file known, whose bytes are in its blob and have the
// size and MD5 that were declared. Its life begins now. mime is the type told by
// the content, empty where it tells none.
//
// Errors: fault.NotFound when the promise has ended; fault.Limited when the account
// has no room for the file, whose promise ends then. In both cases the bytes are
// nobody's, and the caller's to delete.
func (s *Service) Finalize(ctx context.Context, f File, mime string) (File, error) {
	if mime != "" {
		f.MIME = mime
	}
	f.Promised = false
	f.ExpiresAt = f.expiry(s.Now().UTC().Truncate(time.Millisecond))
	err := s.Store.Finalize(ctx, f, s.Now())
	if fault.Is(err, fault.Limited) {
		if err = s.Store.Break(ctx, f.ID); err == nil {
			return File{}, StorageFull(f.Promise.Limit)
		}
		if fault.Is(err, fault.NotFound) {
			// Another request may have brought the same bytes, and found room.
			err = s.Store.Finalize(ctx, f, s.Now())
		}
	}
	if err != nil {
		return File{}, fmt.Errorf("file: publish %s: %w", f.ID, err)
	}
	return f, nil
}

// Get gives an account's file.
//
// Errors: fault.NotFound.
func (s *Service) Get(ctx context.Context, account, id string) (File, error) {
	if !IsReference(id) {
		return File{}, unknown()
	}
	f, err := s.Store.Get(ctx, account, id, s.Now())
	if fault.Is(err, fault.NotFound) && s.Signed != nil {
		// Its bytes may have come a moment ago.
		return s.receive(ctx, account, id)
	}
	return f, s.read(err, unknown())
}

// FindMD5 gives an account's newest file with the MD5, in lower-case hex.
//
// Errors: fault.NotFound.
func (s *Service) FindMD5(ctx context.Context, account, md5 string) (File, error) {
	f, err := s.Store.FindMD5(ctx, account, md5, s.Now())
	return f, s.read(err, fault.New(fault.NotFound, "No file with this MD5."))
}

func (s *Service) read(err, missing error) error {
	if fault.Is(err, fault.NotFound) {
		return missing
	}
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}
	return nil
}

// List gives a page of an account's files, newest first, and the cursor of the
// next page, empty on the last one (docs/contract/media.md#files).
//
// Errors: fault.Invalid when the cursor is none of the account's.
func (s *Service) List(ctx context.Context, account, cursor string, limit int) ([]File, string, error) {
	after := ""
	if cursor != "" {
		var err error
		if after, err = s.Cursors.Read(ctx, account, cursor); err != nil {
			return nil, "", err
		}
	}
	now := s.Now()
	var page []File
	// One more than asked for tells whether another page follows.
	for len(page) <= limit {
		files, next, err := s.Store.List(ctx, account, after, limit+1-len(page), now)
		if err != nil {
			return nil, "", fmt.Errorf("file: list: %w", err)
		}
		page = append(page, files...)
		if next == "" {
			break
		}
		after = next
	}
	if len(page) <= limit {
		return page, "", nil
	}
	page = page[:limit]
	next, err := s.Cursors.Make(ctx, account, page[limit-1].ID)
	return page, next, err
}

// Delete removes an account's file, first its bytes, then its record: while the
// record is there, a delete that failed can be tried again.
//
// Errors: fault.NotFound.
func (s *Service) Delete(ctx context.Context, account, id string) error {
	f, err := s.Get(ctx, account, id)
	if err != nil {
		return err
	}
	if err := s.Blobs.Delete(ctx, f.Blob); err != nil {
		return fmt.Errorf("file: delete the bytes of %s: %w", id, err)
	}
	_, err = s.Store.Delete(ctx, account, id, s.Now())
	return s.read(err, unknown())
}
