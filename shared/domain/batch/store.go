package batch

import (
	"context"
	"time"

	"cutroom/shared/domain/usage"
)

// Store stores batch records. The suite in batchtest specifies it.
type Store interface {
	// Create records a new batch. It deletes all but the newest kept records of the account, except
	// for batches that were not cleared. For most and kept, 0 means no limit.
	//
	// Errors: fault.Limited if the account already has most open batches.
	Create(ctx context.Context, b Batch, most, kept int) error
	// Errors: fault.NotFound.
	Get(ctx context.Context, account, id string) (Batch, error)
	// List returns batches of an account, newest first. It starts after the id, unless that is empty.
	List(ctx context.Context, account, after string, limit int) ([]Batch, error)
	// Change replaces the record of a batch, except for Answered and Failed, and increments its
	// revision.
	//
	// Errors: fault.Conflict if the current status is not from, or the revision is not b.Revision;
	// fault.NotFound.
	Change(ctx context.Context, from Status, b Batch) error
}

// Progress is the part of the store that runners of batches use.
type Progress interface {
	// Open returns all accounts' batches that have not ended, oldest first.
	Open(ctx context.Context) ([]Batch, error)
	// Save stores chunks of a batch in one commit: their lines, the counts of the batch, and its
	// usage, whose records have globally unique ids. Chunks that were already stored are ignored
	// with their usage.
	//
	// Errors: fault.Conflict if another process works on the batch, so that another blob has a
	// chunk's number or the batch has ended; fault.NotFound.
	Save(ctx context.Context, id string, chunks []Chunk, used []usage.Record) error
	// Chunks returns the chunks of a batch, sorted by number.
	Chunks(ctx context.Context, id string) ([]Chunk, error)
}

// Retention is the part of the store that deletes old batches.
type Retention interface {
	// Finished returns ended batches whose blobs have not been deleted.
	Finished(ctx context.Context, limit int) ([]Batch, error)
	// Cleared records that the blobs of a batch were deleted. It deletes its chunks.
	Cleared(ctx context.Context, id string) error
	// Forget deletes the records of cleared batches that ended before the given time.
	Forget(ctx context.Context, before time.Time) error
	// Known reports whether a batch with the id exists and is not cleared.
	Known(ctx context.Context, id string) (bool, error)
}
