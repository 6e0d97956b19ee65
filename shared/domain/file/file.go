// Package file holds the rules of stored files: what a reference says, how
// pages of them follow each other, when one has expired, and how a large one
// arrives by a signed URL. It knows neither HTTP nor a database.
package file

import (
	"context"
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
}

// Expired reports whether the file is past its expiry.
func (f File) Expired(now time.Time) bool {
	return !f.ExpiresAt.IsZero() && !now.Before(f.ExpiresAt)
}

// referenceForm is what a reference looks like (decisions.md, "Forms").
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
	// Create records a file whose bytes are stored.
	//
	// Errors: fault.Limited when the account would then store more than limit
	// bytes, its promised files counted in (0 is no limit); the limit is exact
	// under concurrency. A file that has expired by the new one's CreatedAt no
	// longer counts, swept or not.
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
	// It finds a file from the moment that its Create or Publish returned.
	//
	// Errors: fault.NotFound.
	FindMD5(ctx context.Context, account, md5 string, now time.Time) (File, error)

	// Delete removes the record of an account's file and gives what it was, so
	// that the caller can delete the bytes.
	//
	// Errors: as Get.
	Delete(ctx context.Context, account, id string, now time.Time) (File, error)

	// Promise gives a file that is promised, or was until Publish made it a
	// file; UploadUntil stays as it was.
	//
	// Errors: fault.NotFound when there is none.
	Promise(ctx context.Context, id string) (File, error)

	// Publish makes a promised file known under the same id, with the MIME
	// type and the expiry of f. One that is published already stays as it is.
	//
	// Errors: fault.NotFound when there is no such promise.
	Publish(ctx context.Context, f File) error
}

// Archive is what the sweeper needs of records, on one machine.
type Archive interface {
	// Ended gives files that have expired, and promises that were not kept in
	// time, of all accounts, at most limit. A promise that it has given can no
	// longer be published: its bytes are about to go.
	Ended(ctx context.Context, now time.Time, limit int) ([]File, error)
	// Forget removes the record of a file.
	Forget(ctx context.Context, id string) error
	// KnownBlob reports whether a record, promised ones among them, has the blob.
	KnownBlob(ctx context.Context, blob string) (bool, error)
}
