// Package file holds the rules of stored files: references, pages, expiry, and uploads of large
// files by signed URLs. It imports neither HTTP nor a database.
package file

import (
	"context"
	"cutroom/shared/domain/ascii"
	"cutroom/shared/domain/fault"
	"strings"
	"time"
)

type File struct {
	// ID begins with "file_" and sorts by creation.
	ID      string
	Account string
	// Key is the id of the permanent key behind the upload.
	Key string
	// Filename is the client's base name after CleanName.
	Filename string
	// MIME is the detected type, or else the declared one.
	MIME string
	// Purpose is set for files of the inference address (docs/contract/batches.md#files). It is
	// empty for files of the media service.
	Purpose string
	// Size is in bytes.
	Size int64
	// MD5 is in lower-case hex.
	MD5       string
	Blob      string
	CreatedAt time.Time
	// ExpiresAt is zero for a file that is kept until it is deleted.
	ExpiresAt time.Time
	// Lifetime is the time from the arrival of the bytes to the expiry, 0 for a persistent file.
	Lifetime time.Duration
	// Pending means that the bytes must still arrive by a signed URL, before UploadUntil. Until then the
	// file exists only for that upload. (The JSON names are part of stored idempotency records.)
	Pending     bool `json:"Promised"`
	UploadUntil time.Time
	Upload      PendingUpload `json:"Promise"`
	// Room is the reservation for the file's bytes. Create and Finalize replace it by the file. It
	// is zero without a reservation, and is not stored.
	Room Reservation
}

// PendingUpload is the storage that a pending file counts as, and its limits.
type PendingUpload struct {
	// Bytes is how much the file counts until its bytes have arrived; 0 means its size.
	Bytes int64
	// Limit is the account's storage limit, 0 for no limit. Finalize enforces it.
	Limit int64
	// Most is the account's limit of pending files, 0 for no limit. Create enforces it. It is not stored.
	Most int
}

// Counts returns how many bytes of its account's storage the file uses.
func (f File) Counts() int64 {
	if f.Pending && f.Upload.Bytes > 0 {
		return f.Upload.Bytes
	}
	return f.Size
}

func (f File) Expired(now time.Time) bool {
	return !f.ExpiresAt.IsZero() && !now.Before(f.ExpiresAt)
}

// IsReference reports whether the text has the form of a file id (docs/contract/media.md#references).
func IsReference(text string) bool {
	random, found := strings.CutPrefix(text, "file_")
	return found && len(text) <= MaxReference && ascii.Only(random, "")
}

// MaxReference is the length of the longest reference, in bytes.
const MaxReference = len("file_") + 64

// Store keeps the records of files. The suite in filetest specifies it. It never returns expired files,
// and returns pending ones only from PendingUpload and documented methods.
type Store interface {
	// Create records a file whose bytes are stored, or pending. The file replaces its Room.
	//
	// Errors: fault.Limited if the account would then store more than limit bytes, including its pending
	// files and reservations (0 means no limit); the limit is exact under concurrency. Files that ended by
	// the new file's CreatedAt do not count, even before a sweep. ErrTooManyPending, which is fault.Limited
	// too, if the account would have more than Upload.Most.
	Create(ctx context.Context, f File, limit int64) error

	// Get returns an account's file.
	//
	// Errors: fault.NotFound if it does not exist, is another account's, has
	// expired, or is pending.
	Get(ctx context.Context, account, id string, now time.Time) (File, error)

	// List returns at most limit of an account's files, newest first, starting after the id, or
	// with the newest if it is empty. The id need not exist any more. List may return fewer files,
	// or none, even if more follow. next is the id to continue from, and is empty at the end.
	List(ctx context.Context, account, after string, limit int, now time.Time) (files []File, next string, err error)

	// FindMD5 returns an account's newest file with the MD5 in lower-case hex. It
	// finds a file as soon as its Create or Finalize has returned.
	//
	// Errors: fault.NotFound.
	FindMD5(ctx context.Context, account, md5 string, now time.Time) (File, error)

	// Delete deletes the record of an account's file and returns it, so that the
	// caller can delete the bytes.
	//
	// Errors: as Get.
	Delete(ctx context.Context, account, id string, now time.Time) (File, error)

	// PendingUpload returns a file that is pending, or was pending until Finalize. UploadUntil is
	// unchanged.
	//
	// Errors: fault.NotFound.
	PendingUpload(ctx context.Context, id string) (File, error)

	// Finalize turns a pending file into a stored one under the same id, with the MIME type and the expiry
	// of f. The file then counts its size, and replaces its Room. A finalized file stays unchanged.
	//
	// Errors: fault.NotFound if the file is not pending; fault.Limited if the account would then
	// store more than its Upload.Limit. Files that ended by now do not count.
	Finalize(ctx context.Context, f File, now time.Time) error

	// Abandon deletes the record of a pending file.
	//
	// Errors: fault.NotFound if the file is not pending.
	Abandon(ctx context.Context, id string) error

	Reservations
}

// Reservations reserve account storage for the bytes of uploads in progress.
type Reservations interface {
	// Reserve makes r hold most bytes if the account has ample storage beyond least (see Ample), and least
	// bytes otherwise. It returns r with its new size, which never shrinks, and renews r.Until.
	//
	// Errors: fault.Limited if the account would store more than limit bytes even with least; r is
	// then unchanged. Files that ended by now do not count.
	Reserve(ctx context.Context, r Reservation, least, most, limit int64, now time.Time) (Reservation, error)

	// Release ends a reservation. It succeeds if the reservation does not exist.
	Release(ctx context.Context, r Reservation) error
}

// Reservation reserves account storage for the bytes of an upload in progress.
type Reservation struct {
	Account string
	// ID is unique within the account, and belongs to a single upload.
	ID string
	// Bytes is the reserved size.
	Bytes int64
	// Until is when the reservation ends if the process that made it dies.
	Until time.Time
}

// Ample is how many times the size of an early reservation must remain free for the account's other
// uploads, so that reserved but missing bytes refuse no upload.
const Ample = 128

// ErrTooManyPending means that the account has reached its limit of pending files.
var ErrTooManyPending = fault.New(fault.Limited, "The account has promised as many files as it may.")

// Retention is the part of the store for the sweeper on one machine.
type Retention interface {
	// Ended returns at most limit files of all accounts that have expired, or were pending past their time.
	// A returned pending file can no longer be finalized, because its bytes are about to be deleted.
	Ended(ctx context.Context, now time.Time, limit int) ([]File, error)
	// Forget deletes the record of a file.
	Forget(ctx context.Context, id string) error
	// ReleaseAll ends the reservations of all uploads. Call it at startup, when these uploads have
	// ended. Reservations of batches remain (see batch.Storage).
	ReleaseAll(ctx context.Context) error
	// Extend extends a pending file whose bytes are arriving.
	//
	// Errors: fault.NotFound if the file is not pending.
	Extend(ctx context.Context, id string, until time.Time) error
	// KnownBlob reports whether a record, pending or not, has the blob.
	KnownBlob(ctx context.Context, blob string) (bool, error)
}
