package file

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cutroom/shared/domain/fault"
)

// These constants limit a file's lifetime (docs/contract/media.md#files).
const (
	MinLifetime     = time.Minute
	MaxLifetime     = 30 * 24 * time.Hour
	DefaultLifetime = 24 * time.Hour
)

const (
	MaxSignedSize = 5_000_000_000    // bytes of a file uploaded to a signed URL
	SignedTime    = 30 * time.Minute // the time for which a signed URL accepts requests
	// A pending file counts as MinPendingBytes, or as its size if that is smaller, until more bytes have arrived.
	MinPendingBytes = 1 << 20
	// slowest is the minimum rate for uploads to a blob store, in bytes per second (2 Mbit/s).
	slowest = 250_000
	// holdTime is how long a pending file or a reservation lasts after its last renewal. Even the
	// smallest file may take that long to arrive.
	holdTime = 10 * time.Minute
)

// RenewEvery is how often an upload in progress renews its reservation.
const RenewEvery = holdTime / 5

func (f File) SignedUntil() time.Time { return f.CreatedAt.Add(SignedTime) }

func arrivalTime(size int64) time.Duration { return holdTime + time.Duration(size/slowest)*time.Second }

type Blobs interface {
	Delete(ctx context.Context, name string) error
}

type Config struct {
	Store Store
	Blobs Blobs
	IDs   *IDs
	// SpreadBlobs puts random digits before the ids in the blob names of new files.
	SpreadBlobs bool
	Cursors     Cursors
	Now         func() time.Time
	// Signed is the blob store if it receives the bytes of pending files itself. Otherwise it is nil.
	Signed SignedBlobs
	// Detect returns a file's type from its first media.SniffLen bytes. known reports whether these
	// bytes identify the type. Detect is required if Signed is set.
	Detect func(head []byte) (mime string, known bool)
	// Extender is nil if this service does not receive the bytes of pending files itself.
	Extender interface {
		Extend(ctx context.Context, id string, until time.Time) error
	}
}

type Service struct{ config Config }

func NewService(c Config) *Service  { return &Service{c} }
func (s *Service) Cursors() Cursors { return s.config.Cursors }

// ErrNotFound is also returned for a file that has expired, is pending, or belongs to another account.
var ErrNotFound = fault.New(fault.NotFound, "File not found.")

// NewBlob returns a name for an upload's bytes, before the file has an id.
func (s *Service) NewBlob() (string, error) {
	id, _, err := s.config.IDs.New()
	return s.blobOf(id), err
}

func BlobOf(id string) string { return filePrefix + id }

// With SpreadBlobs, blobOf puts the last two digits of the id first. They are random, so an object
// store that partitions by name prefix spreads new files across partitions.
func (s *Service) blobOf(id string) string {
	if s.config.SpreadBlobs {
		return spreadBlobOf(id)
	}
	return BlobOf(id)
}

func spreadBlobOf(id string) string { return filePrefix + id[max(0, len(id)-2):] + "/" + id }

// Name sets the id and the times of a new file. It is called before Create or CreatePending.
func (s *Service) Name(f File) (File, error) {
	err := s.name(&f)
	return f, err
}

// Create records a file whose bytes are in its blob, and returns the file. It sets the id and the
// times unless Name has set them. The caller sets Account, Key, Filename, MIME, Size, MD5, Blob and
// Lifetime, and deletes the blob if Create fails. A limit of 0 means no limit.
//
// Errors: fault.Limited if the account's storage is full.
func (s *Service) Create(ctx context.Context, f File, limit int64) (File, error) {
	if err := s.name(&f); err != nil {
		return File{}, err
	}
	return f, s.create(ctx, f, limit)
}

// CreatePending records a file whose bytes will arrive at a signed URL. Until Finalize, only that upload can use the
// file. The caller sets the same fields as for Create, except Blob, to the values that the client declared. Until
// more bytes have arrived, the file counts as MinPendingBytes, or its size if that is smaller. The parameter `most`
// is the maximum number of the account's pending files; 0 means no limit.
//
// Errors: as for Create; fault.Limited if the account has too many pending files.
func (s *Service) CreatePending(ctx context.Context, f File, limit int64, most int) (File, error) {
	if err := s.name(&f); err != nil {
		return File{}, err
	}
	f.Blob, f.Pending, f.UploadUntil = s.blobOf(f.ID)+SignedSuffix, true, f.SignedUntil()
	if s.config.Signed != nil {
		// The bytes do not pass through this service, so it must allow time for their transfer.
		f.UploadUntil = f.UploadUntil.Add(arrivalTime(f.Size))
	}
	f.Upload = PendingUpload{Bytes: min(f.Size, MinPendingBytes), Limit: limit, Most: most}
	if limit > 0 && f.Size > limit {
		return File{}, StorageFull(limit)
	}
	return f, s.create(ctx, f, limit)
}

func (s *Service) create(ctx context.Context, f File, limit int64) error {
	err := s.config.Store.Create(ctx, f, limit)
	if errors.Is(err, ErrTooManyPending) {
		many := fault.New(fault.Limited,
			"The account has reached its limit of announced files without bytes (%d). "+
				"Upload their bytes, or wait until their URLs expire.", f.Upload.Most)
		many.RetryAfter = time.Minute
		return many
	}
	return err
}

func StorageFull(limit int64) error {
	full := fault.New(fault.Limited,
		"The account's storage is full (limit: %d bytes). Delete files or jobs with results, or wait until some expire.", limit)
	full.RetryAfter = time.Minute
	return full
}

func (s *Service) name(f *File) error {
	if f.ID != "" {
		return nil
	}
	id, created, err := s.config.IDs.New()
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

// Announced returns a file that is or was pending, even after UploadUntil.
//
// Errors: fault.NotFound.
func (s *Service) Announced(ctx context.Context, id string) (File, error) {
	return s.config.Store.PendingUpload(ctx, id)
}

func (s *Service) URLExpired(f File) bool { return !s.config.Now().Before(f.SignedUntil()) }

// PendingUpload returns a pending file that can receive an upload now.
//
// Errors: fault.Conflict if its bytes have arrived; fault.NotFound if the file is not pending or has expired.
func (s *Service) PendingUpload(ctx context.Context, id string) (File, error) {
	f, err := s.config.Store.PendingUpload(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return File{}, ErrNotFound
	}
	if err != nil {
		return File{}, fmt.Errorf("file: get the pending file %s: %w", id, err)
	}
	if err := s.takesBytes(f); err != nil {
		return File{}, err
	}
	return f, s.Extend(ctx, f)
}

// Errors: as for PendingUpload.
func (s *Service) takesBytes(f File) error {
	switch {
	case !f.Pending && !f.Expired(s.config.Now()):
		return fault.New(fault.Conflict, "The file's bytes have already been uploaded.")
	case !f.Pending, !s.config.Now().Before(f.UploadUntil):
		return ErrNotFound
	}
	return nil
}

// Extend must be called when the first bytes arrive, and then at intervals of RenewEvery.
//
// Errors: fault.Conflict if another request has uploaded the bytes; fault.NotFound if the file is no longer pending.
func (s *Service) Extend(ctx context.Context, f File) error {
	if s.config.Extender == nil {
		return nil
	}
	until := s.config.Now().UTC().Truncate(time.Millisecond).Add(holdTime)
	err := s.config.Extender.Extend(ctx, f.ID, until)
	if fault.Is(err, fault.NotFound) {
		if f, err = s.config.Store.PendingUpload(ctx, f.ID); err == nil {
			err = s.takesBytes(f)
		}
	}
	if fault.Is(err, fault.Conflict) {
		return err
	}
	return s.read(err, ErrNotFound)
}

// Finalize turns a pending file into a stored file, whose lifetime starts now. The blob must have
// the declared size and MD5. mime is the detected type, or empty.
//
// Errors: fault.NotFound if the file is no longer pending; fault.Limited if the account's storage
// is full, in which case the file is abandoned. In both cases the caller deletes the bytes.
func (s *Service) Finalize(ctx context.Context, f File, mime string) (File, error) {
	if mime != "" {
		f.MIME = mime
	}
	f.Pending = false
	f.ExpiresAt = f.expiry(s.config.Now().UTC().Truncate(time.Millisecond))
	err := s.config.Store.Finalize(ctx, f, s.config.Now())
	if fault.Is(err, fault.Limited) {
		if err = s.config.Store.Abandon(ctx, f.ID); err == nil {
			return File{}, StorageFull(f.Upload.Limit)
		}
		if fault.Is(err, fault.NotFound) {
			// Another request has uploaded the same bytes in the meantime.
			err = s.config.Store.Finalize(ctx, f, s.config.Now())
		}
	}
	if err != nil {
		return File{}, fmt.Errorf("file: finalize %s: %w", f.ID, err)
	}
	return f, nil
}

// Errors: fault.NotFound.
func (s *Service) Get(ctx context.Context, account, id string) (File, error) {
	if !IsReference(id) {
		return File{}, ErrNotFound
	}
	f, err := s.config.Store.Get(ctx, account, id, s.config.Now())
	if fault.Is(err, fault.NotFound) && s.config.Signed != nil {
		// The bytes may have just arrived.
		return s.receive(ctx, account, id)
	}
	return f, s.read(err, ErrNotFound)
}

// FindMD5 returns an account's newest file with the MD5.
//
// Errors: fault.NotFound.
func (s *Service) FindMD5(ctx context.Context, account, md5 string) (File, error) {
	f, err := s.config.Store.FindMD5(ctx, account, md5, s.config.Now())
	return f, s.read(err, fault.New(fault.NotFound, "No file has this MD5."))
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

// List returns a page of an account's files, newest first, and the cursor of the next page, if any
// (docs/contract/media.md#files).
//
// Errors: fault.Invalid if the cursor belongs to another account.
func (s *Service) List(ctx context.Context, account, cursor string, limit int) ([]File, string, error) {
	after := ""
	if cursor != "" {
		var err error
		if after, err = s.config.Cursors.Read(ctx, account, cursor); err != nil {
			return nil, "", err
		}
	}
	page, more, err := s.ListAfter(ctx, account, after, limit)
	if err != nil || !more {
		return page, "", err
	}
	next, err := s.config.Cursors.Make(ctx, account, page[limit-1].ID)
	return page, next, err
}

// ListAfter returns files after the given id, or from the newest file if the id is empty.
func (s *Service) ListAfter(ctx context.Context, account, after string, limit int) (page []File, more bool, err error) {
	now := s.config.Now()
	// One extra file shows whether there is another page.
	for len(page) <= limit {
		files, next, err := s.config.Store.List(ctx, account, after, limit+1-len(page), now)
		if err != nil {
			return nil, false, fmt.Errorf("file: list: %w", err)
		}
		page = append(page, files...)
		if next == "" {
			break
		}
		after = next
	}
	if len(page) <= limit {
		return page, false, nil
	}
	return page[:limit], true, nil
}

// Delete deletes the bytes first and the record last, so that a failed deletion can be retried.
//
// Errors: fault.NotFound.
func (s *Service) Delete(ctx context.Context, account, id string) error {
	f, err := s.Get(ctx, account, id)
	if err != nil {
		return err
	}
	if err := DeleteBytes(ctx, s.config.Blobs, f); err != nil {
		return err
	}
	_, err = s.config.Store.Delete(ctx, account, id, s.config.Now())
	return s.read(err, ErrNotFound)
}
