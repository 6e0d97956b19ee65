package batch

import (
	"context"
	"time"

	"cutroom/shared/domain/file"
)

// blobsKept is how long a reservation is held after its last renewal. By then the blobs of
// the batch are gone, even if nothing but the bucket's lifecycle deletes them.
const blobsKept = 4 * 24 * time.Hour

// Storage counts the blobs of a batch towards the storage of its account: its input and the
// results that were kept so far. The count is one reservation with the batch's id. It is made
// before the first blob is written, and released after the last one was deleted.
type Storage struct {
	Reservations file.Reservations
	Now          func() time.Time
}

// Hold has a batch count as many bytes, where held is its reservation as far as the caller
// knows. It returns the reservation, which never shrinks. A batch that counts more already
// keeps its count.
//
// Errors: fault.Limited if the account would store more than limit bytes (0 means no limit).
func (s Storage) Hold(ctx context.Context, held file.Reservation, bytes, limit int64) (file.Reservation, error) {
	now := s.Now()
	held.Until = now.UTC().Truncate(time.Millisecond).Add(blobsKept)
	return s.Reservations.Reserve(ctx, held, bytes, bytes, limit, now)
}

// Release ends the count of a batch. To release it again changes nothing.
func (s Storage) Release(ctx context.Context, b Batch) error {
	return s.Reservations.Release(ctx, Reservation(b))
}

// Reservation returns the reservation of a batch for a caller who does not know its size.
func Reservation(b Batch) file.Reservation { return file.Reservation{Account: b.Account, ID: b.ID} }
