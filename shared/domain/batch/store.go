package batch

import (
	"context"
	"time"

	"cutroom/shared/domain/usage"
)

// Store keeps the records of batches. The suite in batchtest specifies it.
type Store interface {
	// Create records a new batch. The account's records older than its newest kept ones
	// (0 means any number) are forgotten if they are of batches that were cleared.
	//
	// Errors: fault.Limited if the account has most open batches already (0 means no
	// limit).
	Create(ctx context.Context, b Batch, most, kept int) error
	// Get returns a batch of an account.
	//
	// Errors: fault.NotFound.
	Get(ctx context.Context, account, id string) (Batch, error)
	// List returns batches of an account, newest first: those after the one with the
	// id, or from the newest if it is empty.
	List(ctx context.Context, account, after string, limit int) ([]Batch, error)
	// Change replaces the record of a batch, except for its counts of answers and
	// failures, if its status is still the one given and its revision that of b, and
	// counts the revision up.
	//
	// Errors: fault.Conflict if they are not; fault.NotFound.
	Change(ctx context.Context, from Status, b Batch) error
}

// Progress is what works on batches needs of the store besides Store.
type Progress interface {
	// Open returns the batches of all accounts that have not ended, oldest first.
	Open(ctx context.Context) ([]Batch, error)
	// Save keeps chunks of a batch in one commit: their lines, the counts of the
	// batch, and what was used, whose records have ids that are unique for ever.
	// Chunks that are kept already change nothing, together with what they used.
	//
	// Errors: fault.Conflict if another blob is kept as a chunk of the same number, or the batch
	// has ended: somebody else works on it; fault.NotFound if there is no such batch.
	Save(ctx context.Context, id string, chunks []Chunk, used []usage.Record) error
	// Chunks returns the chunks of a batch by their numbers.
	Chunks(ctx context.Context, id string) ([]Chunk, error)
}

// Retention is what deletes what is past its time needs of the store.
type Retention interface {
	// Finished returns batches that have ended and whose blobs were not deleted yet.
	Finished(ctx context.Context, limit int) ([]Batch, error)
	// Cleared says that the blobs of a batch were deleted, and forgets its chunks.
	Cleared(ctx context.Context, id string) error
	// Forget deletes the records of batches that ended before the time and are
	// cleared.
	Forget(ctx context.Context, before time.Time) error
	// Known reports whether there is a batch with the id that is not cleared.
	Known(ctx context.Context, id string) (bool, error)
}
