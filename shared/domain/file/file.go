// Package file holds the rules of stored files: what a reference says, how
// pages of them follow each other, when one has expired, and how a large one
// arrives by a signed URL. It knows neither HTTP nor a database.
package file

import (
	"context"
	"errors"
	"regexp"
	"time"
)

// File is the record of one upload.
type File struct {
	// ID begins with "file_" and sorts by creation.
	ID      string
	Account string
	// Key is the id of the permanent key behind the upload.
	Key string
	// Filename is the client's base name, cleaned (see CleanName).
	Filename string
	// MIME is the type told by the content, or the declared one where the
	// content tells none.
	MIME string
	// Size is in bytes.
	Size int64
	// MD5 of the bytes, in lower-case hex.
	MD5 string
	// Blob is where the bytes are.
	Blob      string
	CreatedAt time.Time
	// ExpiresAt is zero for a file that is kept until it is deleted.
	ExpiresAt time.Time
	// Lifetime is from the arrival of the bytes to the expiry, 0 for a
	// persistent file.
	Lifetime time.Duration
	// Promised means that the bytes are still to arrive by a signed URL, until
	// UploadUntil; the file is then unknown to everyone but that upload.
	Promised    bool
	UploadUntil time.Time
	// Promise is what a promised file counts, and is held to.
	Promise PendingUpload
	// Room is what was reserved for the file's bytes: Create and Finalize count the
	// file in its place. It is zero where nothing was, and is not kept.
	Room Reservation
}

// PendingUpload is what a promised file counts towards its account's storage, and what
// it is held to.
type PendingUpload struct {
	// Bytes is what the file counts until its bytes are there; 0 is its size.
	Bytes int64
	// Limit is how many bytes the account may store, 0 for any: what Finalize holds
	// the file to.
	Limit int64
	// Most is how many files the account may have promised at once, 0 for any
	// number: what Create holds it to. It is not kept.
	Most int
}

// Counts gives how many bytes the file counts towards its account's storage.
func (f File) Counts() int64 {
	if f.Promised && f.Promise.Bytes > 0 {
		return f.Promise.Bytes
	}
	return f.Size
}

// Expired reports whether the file is past its expiry.
func (f File) Expired(now time.Time) bool {
	return !f.ExpiresAt.IsZero() && !now.Before(f.ExpiresAt)
}

// referenceForm is what a reference looks like (docs/contract/media.md#references).
var referenceForm = regexp.MustCompile(`^file_[0-9A-Za-z]+$`)

// IsReference reports whether the text has the form of a file's id.
func IsReference(text string) bool {
	return len(text) <= MaxReference && referenceForm.MatchString(text)
}

// MaxReference is the length of the longest reference, in bytes.
const MaxReference = len("file_") + 64

// Store keeps the records of files. The suite in filetest specifies it. Expired
// files are never given; promised ones only by Promise and by the methods that
// say so.
type Store interface {
	// Create records a file whose bytes are stored, or promised. It counts in the
	// place of its Room.
	//
	// Errors: fault.Limited when the account would then store more than limit
	// bytes, its promised files and its reservations counted in (0 is no limit);
	// the limit is exact under concurrency. What has ended by the new file's
	// CreatedAt no longer counts, swept or not. ErrManyPromises, which is
	// fault.Limited too, when the account would have more than Promise.Most.
	Create(ctx context.Context, f File, limit int64) error

	// Get gives an account's file.
	//
	// Errors: fault.NotFound when there is none, it is another account's, has
	// expired, or is only promised.
	Get(ctx context.Context, account, id string, now time.Time) (File, error)

	// List gives an account's files, newest first, at most limit, beginning
	// after the file with the id; an empty id begins with the newest. The id
	// need not exist any more. It may give fewer than limit files, and none,
	// while more follow; next is then the id to go on from, and empty when
	// nothing follows.
	List(ctx context.Context, account, after string, limit int, now time.Time) (files []File, next string, err error)

	// FindMD5 gives an account's newest file with the MD5 in lower-case hex.
	// It finds a file from the moment that its Create or Finalize returned.
	//
	// Errors: fault.NotFound.
	FindMD5(ctx context.Context, account, md5 string, now time.Time) (File, error)

	// Delete removes the record of an account's file and gives what it was, so
	// that the caller can delete the bytes.
	//
	// Errors: as Get.
	Delete(ctx context.Context, account, id string, now time.Time) (File, error)

	// PendingUpload gives a file that is promised, or was until Finalize made it a
	// file; UploadUntil stays as it was.
	//
	// Errors: fault.NotFound when there is none.
	PendingUpload(ctx context.Context, id string) (File, error)

	// Finalize makes a promised file known under the same id, with the MIME
	// type and the expiry of f. It counts its size from then on, in the place of
	// its Room. One that is published already stays as it is.
	//
	// Errors: fault.NotFound when there is no such promise; fault.Limited when the
	// account would then store more than the promise's Limit: now is the time by
	// which what has ended does not count.
	Finalize(ctx context.Context, f File, now time.Time) error

	// Break ends a promise that is not kept.
	//
	// Errors: fault.NotFound when there is none, or it was kept.
	Break(ctx context.Context, id string) error

	Reservations
}

// Reservations keep room in the accounts' storage for the bytes of uploads that
// are under way.
type Reservations interface {
	// Reserve makes r hold the most bytes where the account has ample room for what
	// that is beyond the least of them (see Ample), else the least, and gives it with
	// what it holds then. It never holds less than before. r.Until is set anew.
	//
	// Errors: fault.Limited when the account would store more than limit bytes with
	// the least of them: r is as it was. What has ended by now does not count.
	Reserve(ctx context.Context, r Reservation, least, most, limit int64, now time.Time) (Reservation, error)

	// Release ends a reservation. That there is none is no error.
	Release(ctx context.Context, r Reservation) error
}

// Reservation is room in an account's storage for the bytes of an upload that is
// under way.
type Reservation struct {
	Account string
	// ID is unique among those of the account, and for one upload alone.
	ID string
	// Bytes is what is reserved.
	Bytes int64
	// Until is when the reservation ends unless it is renewed: the process that
	// made it has died then.
	Until time.Time
}

// Ample is how many times what one upload reserves ahead must be left to the
// others of its account, so that none is refused for what another has not brought.
const Ample = 128

// ErrManyPromises says that an account has as many promised files as it may.
var ErrManyPromises = errors.New("file: the account has as many promised files as it may")

// Retention is what the sweeper needs of records, on one machine.
type Retention interface {
	// Ended gives files that have expired, and promises that were not kept in
	// time, of all accounts, at most limit. A promise that it has given can no
	// longer be published: its bytes are about to go.
	Ended(ctx context.Context, now time.Time, limit int) ([]File, error)
	// Forget removes the record of a file.
	Forget(ctx context.Context, id string) error
	// ReleaseAll ends all reservations. It is for the start, when what made them
	// has ended.
	ReleaseAll(ctx context.Context) error
	// Extend puts off the end of a promise whose bytes have begun to arrive.
	//
	// Errors: fault.NotFound when there is no such promise.
	Extend(ctx context.Context, id string, until time.Time) error
	// KnownBlob reports whether a record, promised ones among them, has the blob.
	KnownBlob(ctx context.Context, blob string) (bool, error)
}
