package batch

import (
	"context"
	"time"

	"cutroom/shared/domain/file"
)

// blobsKept is the lifetime of a reservation after its last renewal. By its end, even the bucket's
// lifecycle rule has deleted the batch's blobs.
const blobsKept = 4 * 24 * time.Hour

// Storage counts a batch's input and results towards its account's storage. It uses one reservation
// with the batch's id, from before the first blob is written until the last one is deleted.
type Storage struct {
	Reservations file.Reservations
	Now          func() time.Time
}

// Hold raises the reservation of a batch to a number of bytes. held is the reservation as the
// caller knows it. Hold returns the new reservation, which never shrinks. A limit of 0 means no
// limit.
//
// Errors: fault.Limited if the account would store more than limit bytes.
func (s Storage) Hold(ctx context.Context, held file.Reservation, bytes, limit int64) (file.Reservation, error) {
	now := s.Now()
	held.Until = now.UTC().Truncate(time.Millisecond).Add(blobsKept)
	return s.Reservations.Reserve(ctx, held, bytes, bytes, limit, now)
}

// Release ends the reservation of a batch. It may be repeated.
func (s Storage) Release(ctx context.Context, b Batch) error {
	return s.Reservations.Release(ctx, Reservation(b))
}

func Reservation(b Batch) file.Reservation { return file.Reservation{Account: b.Account, ID: b.ID} }
