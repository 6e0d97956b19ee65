package batch

import (
	"context"
	"time"

	"cutroom/shared/domain/usage"
)

// Store keeps the records of batches. The suite in batchtest specifies it.
type Store interface {
	// Create records a new batch. It deletes records of the account beyond its newest kept ones (0
	// means no limit) if their batches were cleared.
	//
	// Errors: fault.Limited if the account already has most open batches (0 means no limit).
	Create(ctx context.Context, b Batch, most, kept int) error
	// Get returns a batch of an account.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, account, id string) (Batch, error)
	// List returns batches of an account, newest first, starting after the id, or with the newest
	// if it is empty.
	List(ctx context.Context, account, after string, limit int) ([]Batch, error)
	// Change replaces the record of a batch, except for its counts of answers and failures, and
	// increments its revision.
	//
	// Errors: fault.Conflict if the current status is not from, or the revision is not b.Revision;
	// fault.NotFound.
	Change(ctx context.Context, from Status, b Batch) error
}

// Progress is the part of the store for runners of batches.
type Progress interface {
	// Open returns the batches of all accounts that have not ended, oldest first.
	Open(ctx context.Context) ([]Batch, error)
	// Save stores chunks of a batch in one commit: their lines, the counts of the batch, and its
	// usage, whose records have globally unique ids. Chunks that were stored before change nothing,
	// nor does their usage.
	//
	// Errors: fault.Conflict if another blob has the number of a chunk or the batch has ended,
	// because another process works on it; fault.NotFound.
	Save(ctx context.Context, id string, chunks []Chunk, used []usage.Record) error
	// Chunks returns the chunks of a batch in the order of their numbers.
	Chunks(ctx context.Context, id string) ([]Chunk, error)
}

// Retention is the part of the store for deleting old batches.
type Retention interface {
	// Finished returns ended batches whose blobs have not been deleted yet.
	Finished(ctx context.Context, limit int) ([]Batch, error)
	// Cleared records that the blobs of a batch were deleted, and deletes its chunks.
	Cleared(ctx context.Context, id string) error
	// Forget deletes the records of cleared batches that ended before the time.
	Forget(ctx context.Context, before time.Time) error
	// Known reports whether there is a batch with the id that is not cleared.
	Known(ctx context.Context, id string) (bool, error)
}
