package batch

import (
	"context"
	"time"

	"cutroom/shared/domain/usage"
)

// Store stores batch records. The suite in batchtest specifies it.
type Store interface {
	// Create records a new batch. An account may have up to `most` open batches. If it has more than `kept` cleared
	// batches, the oldest are deleted. For both limits, 0 means no limit.
	//
	// Errors: fault.Limited if the account already has that many open batches.
	Create(ctx context.Context, b Batch, most, kept int) error
	// Errors: fault.NotFound.
	Get(ctx context.Context, account, id string) (Batch, error)
	// List returns the account's batches, newest first, starting after the given id unless it is empty.
	List(ctx context.Context, account, after string, limit int) ([]Batch, error)
	// Change replaces a batch's record, except for Answered and Failed, and increments the revision.
	//
	// Errors: fault.Conflict if the stored status is not the given one or the stored revision is not b.Revision;
	// fault.NotFound.
	Change(ctx context.Context, from Status, b Batch) error
}

// Progress has the store methods that batch runners use.
type Progress interface {
	// Open returns the batches that have not ended, from all accounts, oldest first.
	Open(ctx context.Context) ([]Batch, error)
	// Save stores chunks of a batch, with their lines, the batch's updated counts and the usage, in one commit. Each
	// usage record has a globally unique id. Chunks that are already stored are ignored, and so is their usage.
	//
	// Errors: fault.Conflict if another process has stored a different blob under a chunk's number,
	// or the batch has ended; fault.NotFound.
	Save(ctx context.Context, id string, chunks []Chunk, used []usage.Record) error
	// Chunks returns a batch's chunks, sorted by number.
	Chunks(ctx context.Context, id string) ([]Chunk, error)
}

// Retention has the store methods for deleting old batches.
type Retention interface {
	// Finished returns ended batches whose blobs have not been deleted yet.
	Finished(ctx context.Context, limit int) ([]Batch, error)
	// Cleared records that a batch's blobs have been deleted. It deletes the records of the chunks.
	Cleared(ctx context.Context, id string) error
	// Forget deletes the records of cleared batches that ended before the given time.
	Forget(ctx context.Context, before time.Time) error
	// Known reports whether the batch exists and has not been cleared.
	Known(ctx context.Context, id string) (bool, error)
}
