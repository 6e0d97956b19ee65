// Package file holds the rules of stored files: what a reference contains, how they
// are paged, when one expires, and how a large one is uploaded by a signed URL. It
// knows neither HTTP nor a database.
package file

import (
	"context"
	"cutroom/shared/domain/ascii"
	"cutroom/shared/domain/fault"
	"strings"
	"time"
)

// File is the record of one upload.
type File struct {
	// ID begins with "file_" and sorts by creation.
	ID      string
	Account string
	// Key is the id of the permanent key behind the upload.
	Key string
	// Filename is the base name that the client sent, cleaned (see CleanName).
	Filename string
	// MIME is the type detected from the content, or else the declared one.
	MIME string
	// Purpose is what the file was uploaded for at the inference address
	// (docs/contract/batches.md#files), empty for files of the media service.
	Purpose string
	// Size is in bytes.
	Size int64
	// MD5 is that of the bytes, in lower-case hex.
	MD5 string
	// Blob is the name of the blob that holds the bytes.
	Blob      string
	CreatedAt time.Time
	// ExpiresAt is zero for a file that is kept until it is deleted.
	ExpiresAt time.Time
	// Lifetime is the time from the arrival of the bytes to the expiry, 0 for a
	// persistent file.
	Lifetime time.Duration
	// Pending means that the bytes are still to be uploaded by a signed URL, before
	// UploadUntil. Until then the file exists only for that upload. (The JSON names are
	// those in the idempotency records of announcements.)
	Pending     bool `json:"Promised"`
	UploadUntil time.Time
	// Upload is what a pending file counts, and its limits.
	Upload PendingUpload `json:"Promise"`
	// Room is what was reserved for the file's bytes: Create and Finalize replace
	// the reservation by the file. It is zero if nothing was reserved, and is not
	// stored.
	Room Reservation
}

// PendingUpload is what a pending file counts towards its account's storage, and
// its limits.
type PendingUpload struct {
	// Bytes is what the file counts until its bytes have arrived; 0 means its size.
	Bytes int64
	// Limit is how many bytes the account may store, 0 for no limit. Finalize
	// enforces it.
	Limit int64
	// Most is how many pending files the account may have, 0 for no limit. Create
	// enforces it. It is not stored.
	Most int
}

// Counts returns how many bytes the file counts towards its account's storage.
func (f File) Counts() int64 {
	if f.Pending && f.Upload.Bytes > 0 {
		return f.Upload.Bytes
	}
	return f.Size
}

// Expired reports whether the file is past its expiry.
func (f File) Expired(now time.Time) bool {
	return !f.ExpiresAt.IsZero() && !now.Before(f.ExpiresAt)
}

// IsReference reports whether the text has the form of a file's id
// (docs/contract/media.md#references).
func IsReference(text string) bool {
	random, found := strings.CutPrefix(text, "file_")
	return found && len(text) <= MaxReference && ascii.Only(random, "")
}

// MaxReference is the length of the longest reference, in bytes.
const MaxReference = len("file_") + 64

// Store keeps the records of files. The suite in filetest specifies it. It never
// returns expired files, and returns pending ones only from PendingUpload and the
// methods that say so.
type Store interface {
	// Create records a file whose bytes are stored, or pending. The file replaces
	// its Room.
	//
	// Errors: fault.Limited if the account would then store more than limit bytes,
	// including its pending files and reservations (0 means no limit); the limit is
	// exact under concurrency. What ended by the new file's CreatedAt does not
	// count, swept or not. ErrTooManyPending, which is fault.Limited too, if the
	// account would have more than Upload.Most.
	Create(ctx context.Context, f File, limit int64) error

	// Get returns an account's file.
	//
	// Errors: fault.NotFound if it does not exist, is another account's, has
	// expired, or is pending.
	Get(ctx context.Context, account, id string, now time.Time) (File, error)

	// List returns at most limit of an account's files, newest first, starting
	// after the file with the id; an empty id starts with the newest. The id need
	// not exist any more. List may return fewer files than limit, even none, while
	// more follow: next is then the id to continue from, and empty if nothing
	// follows.
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

	// PendingUpload returns a file that is pending, or was pending until Finalize;
	// UploadUntil is unchanged.
	//
	// Errors: fault.NotFound if there is none.
	PendingUpload(ctx context.Context, id string) (File, error)

	// Finalize turns a pending file into a stored one under the same id, with the
	// MIME type and the expiry of f. From then on the file counts its size, and
	// replaces its Room. A file that is final already stays as it is.
	//
	// Errors: fault.NotFound if there is no such pending file; fault.Limited if the
	// account would then store more than its Upload.Limit. What ended by now does
	// not count.
	Finalize(ctx context.Context, f File, now time.Time) error

	// Abandon deletes the record of a pending file.
	//
	// Errors: fault.NotFound if there is none, or it is final.
	Abandon(ctx context.Context, id string) error

	Reservations
}

// Reservations reserve room in the accounts' storage for the bytes of uploads in
// progress.
type Reservations interface {
	// Reserve makes r hold most bytes if the account has ample room for the part
	// beyond least (see Ample), and least bytes otherwise. It returns r with what
	// it now holds, which is never less than before, and sets r.Until anew.
	//
	// Errors: fault.Limited if the account would store more than limit bytes even
	// with least; r is then unchanged. What ended by now does not count.
	Reserve(ctx context.Context, r Reservation, least, most, limit int64, now time.Time) (Reservation, error)

	// Release ends a reservation. It is no error if there is none.
	Release(ctx context.Context, r Reservation) error
}

// Reservation is room in an account's storage for the bytes of an upload in
// progress.
type Reservation struct {
	Account string
	// ID is unique within the account, and belongs to a single upload.
	ID string
	// Bytes is the reserved size.
	Bytes int64
	// Until is when the reservation ends if it is not renewed, because the process
	// that made it has died.
	Until time.Time
}

// Ample is how many times the size of a reservation ahead of need must remain free
// for the account's other uploads. So none of them is refused because of bytes that
// have not arrived.
const Ample = 128

// ErrTooManyPending means that an account has as many pending files as it may.
var ErrTooManyPending = fault.New(fault.Limited, "The account has promised as many files as it may.")

// Retention is what the sweeper needs from the records, on one machine.
type Retention interface {
	// Ended returns at most limit files of all accounts that have expired, or were
	// pending past their time. A pending file that it has returned can no longer be
	// finalized: its bytes are about to be deleted.
	Ended(ctx context.Context, now time.Time, limit int) ([]File, error)
	// Forget deletes the record of a file.
	Forget(ctx context.Context, id string) error
	// ReleaseAll ends the reservations of all uploads. Call it at startup, when the
	// uploads that made them are gone. Those of batches remain (see batch.Storage).
	ReleaseAll(ctx context.Context) error
	// Extend extends a pending file whose bytes have begun to arrive.
	//
	// Errors: fault.NotFound if there is no such pending file.
	Extend(ctx context.Context, id string, until time.Time) error
	// KnownBlob reports whether a record, pending or not, has the blob.
	KnownBlob(ctx context.Context, blob string) (bool, error)
}
