package batch

import (
	"context"
	"time"

	"cutroom/shared/domain/file"
)

// blobsKept is how long a reservation lasts after its last renewal. By then, even the bucket's
// lifecycle rule has deleted the batch's blobs.
const blobsKept = 4 * 24 * time.Hour

// Storage counts a batch's input and results toward its account's storage. Each batch has one reservation, with
// the batch's id, from before its first blob is written until its last one is deleted.
type Storage struct {
	Reservations file.Reservations
	Now          func() time.Time
}

// Hold raises a batch's reservation to the given number of bytes. held is the reservation last known to the caller.
// Hold returns the new reservation. A reservation never shrinks. A limit of 0 means no limit.
//
// Errors: fault.Limited if the account's storage would exceed the limit.
func (s Storage) Hold(ctx context.Context, held file.Reservation, bytes, limit int64) (file.Reservation, error) {
	now := s.Now()
	held.Until = now.UTC().Truncate(time.Millisecond).Add(blobsKept)
	return s.Reservations.Reserve(ctx, held, bytes, bytes, limit, now)
}

// Release ends a batch's reservation. Calling it again is harmless.
func (s Storage) Release(ctx context.Context, b Batch) error {
	return s.Reservations.Release(ctx, Reservation(b))
}

func Reservation(b Batch) file.Reservation { return file.Reservation{Account: b.Account, ID: b.ID} }
