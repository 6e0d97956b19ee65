// Package file holds the rules for stored files: references, pages, expiry, and uploads of large
// files to signed URLs. It imports neither HTTP nor a database.
package file

import (
	"context"
	"cutroom/shared/domain/ascii"
	"cutroom/shared/domain/fault"
	"strings"
	"time"
)

type File struct {
	// ID begins with "file_". Ids sort by creation time.
	ID      string
	Account string
	// Key is the id of the permanent key that uploaded the file.
	Key string
	// Filename is the cleaned base name (see CleanName).
	Filename string
	// MIME is the detected type, or the declared type if detection fails.
	MIME string
	// Purpose is set only for files at the inference address (docs/contract/batches.md#files).
	Purpose   string
	Size      int64
	MD5       string // lower-case hex
	Blob      string
	CreatedAt time.Time
	ExpiresAt time.Time // zero for a persistent file
	// Lifetime is the time from the arrival of the bytes until expiry, or 0 for a persistent file.
	Lifetime time.Duration
	// Pending means that the bytes have not arrived at the signed URL yet. They must arrive before UploadUntil. Until
	// they arrive, only the upload can use the file. (The JSON names are stored in idempotency records.)
	Pending     bool `json:"Promised"`
	UploadUntil time.Time
	Upload      PendingUpload `json:"Promise"`
	// Reserved is the upload's reservation, or zero if nothing is reserved. Create and Finalize
	// replace it with the file.
	Reserved Reservation `json:"Room"`
}

// PendingUpload states how much storage a pending file uses, and the account's limits.
type PendingUpload struct {
	// Bytes is the storage that the file counts as until its bytes have arrived. 0 means the file's size.
	Bytes int64
	// Limit is the storage limit that Finalize enforces. 0 means no limit.
	Limit int64
	// Most is the maximum number of pending files, which Create enforces. It is not stored. 0 means no limit.
	Most int
}

func (f File) Counts() int64 {
	if f.Pending && f.Upload.Bytes > 0 {
		return f.Upload.Bytes
	}
	return f.Size
}

func (f File) Expired(now time.Time) bool { return !f.ExpiresAt.IsZero() && !now.Before(f.ExpiresAt) }

// IsReference reports whether text has the format of a file id (docs/contract/media.md#references).
func IsReference(text string) bool {
	random, found := strings.CutPrefix(text, "file_")
	return found && len(text) <= MaxReference && ascii.Only(random, "")
}

const MaxReference = len("file_") + 64 // in bytes

// Store stores file records. It never returns expired files. Only PendingUpload and methods that
// say so return pending files.
type Store interface {
	// Create records a stored or pending file and removes its reservation.
	//
	// Errors: fault.Limited if the account's stored bytes, including its pending files and reservations, would then
	// exceed the limit. A limit of 0 means no limit. The limit is exact under concurrency. Files that expire at or
	// before the new file's CreatedAt do not count, even if they have not been swept. ErrTooManyPending, which is
	// also fault.Limited, if the account would have more than Upload.Most pending files.
	Create(ctx context.Context, f File, limit int64) error

	// Errors: fault.NotFound if the file does not exist, belongs to another account, has expired, or is pending.
	Get(ctx context.Context, account, id string, now time.Time) (File, error)

	// List returns an account's files, newest first, up to the limit. It starts after the file whose id is `after`,
	// which need not exist, or with the newest file if `after` is empty. It may return fewer files, or none, even if
	// more follow. next is the id to continue from, or empty at the end.
	List(ctx context.Context, account, after string, limit int, now time.Time) (files []File, next string, err error)

	// FindMD5 returns an account's newest file with the MD5 in lower-case hex. It finds a file as
	// soon as Create or Finalize has returned.
	//
	// Errors: fault.NotFound.
	FindMD5(ctx context.Context, account, md5 string, now time.Time) (File, error)

	// Delete deletes the record and returns it, so that the caller can delete the bytes.
	//
	// Errors: as for Get.
	Delete(ctx context.Context, account, id string, now time.Time) (File, error)

	// PendingUpload returns a file that is pending, or that was pending before Finalize. Finalize
	// does not change UploadUntil.
	//
	// Errors: fault.NotFound.
	PendingUpload(ctx context.Context, id string) (File, error)

	// Finalize turns a pending file into a stored file with the same id, and with the MIME type and expiry of f. The
	// file then counts with its full size, and its reservation is removed. Finalizing a file again changes nothing.
	//
	// Errors: fault.NotFound if the file is not pending; fault.Limited if the account would then store more than the
	// file's Upload.Limit. Files that expire at or before now do not count.
	Finalize(ctx context.Context, f File, now time.Time) error

	// Errors: fault.NotFound if the file is not pending.
	Abandon(ctx context.Context, id string) error

	Reservations
}

type Reservations interface {
	// Reserve enlarges r to the size `most` if the account has ample storage (see Ample), otherwise to the size
	// `least`. It renews r until r.Until and returns it with its new size. A reservation never shrinks.
	//
	// Errors: fault.Limited if the account's storage would exceed the limit even with the smaller size. In that case
	// r is unchanged. Files that expired before now do not count.
	Reserve(ctx context.Context, r Reservation, least, most, limit int64, now time.Time) (Reservation, error)

	// Release succeeds even if the reservation does not exist.
	Release(ctx context.Context, r Reservation) error
}

// Reservation reserves account storage for the bytes of an upload in progress.
type Reservation struct {
	Account string
	// ID is unique to the upload.
	ID    string
	Bytes int64
	// Until is when the reservation expires if its process has died.
	Until time.Time
}

// Ample limits early reservations: the account's remaining storage must be at least Ample times the reservation, so
// that bytes reserved too early do not block other uploads.
const Ample = 128

var ErrTooManyPending = fault.New(fault.Limited, "The account has reached its limit of pending files.")

// Retention has the store methods that the sweeper on one machine needs.
type Retention interface {
	// Ended returns files that have expired, or that were still pending at UploadUntil. It returns files of all
	// accounts, up to the limit. A pending file that Ended has returned can no longer be finalized, because its bytes
	// are about to be deleted.
	Ended(ctx context.Context, now time.Time, limit int) ([]File, error)
	Forget(ctx context.Context, id string) error
	// ReleaseAll releases the reservations of all uploads. It is called at startup. Reservations of
	// batches remain (see batch.Storage).
	ReleaseAll(ctx context.Context) error
	// Extend extends the upload deadline while bytes are arriving.
	//
	// Errors: fault.NotFound if the file is not pending.
	Extend(ctx context.Context, id string, until time.Time) error
	KnownBlob(ctx context.Context, blob string) (bool, error)
}
