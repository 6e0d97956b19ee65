package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// batches gathers what concurrent calls write into transactions that they
// share: whoever comes while one transaction runs goes into the next, so that
// the cost of a commit is divided among as many as wait for it.
type batches[T any] struct {
	mu sync.Mutex
	// next takes items; nil while nobody waits.
	next *batch[T]
}

// errNotWritten is the error of a batch whose writing panicked.
var errNotWritten = errors.New("sqlite: the batch was not written")

// batch is what goes into one transaction.
type batch[T any] struct {
	items []T
	// done is closed once err says how the transaction ended.
	done chan struct{}
	err  error
}

// write writes the item with a transaction of db and returns once that has
// ended; do gets all items of the transaction. The call that begins a batch
// does the writing for those that join it, so its context does not end the
// transaction.
func (b *batches[T]) write(ctx context.Context, db *DB, what string, item T, do func(ctx context.Context, tx *sql.Tx, items []T) error) error {
	b.mu.Lock()
	mine, joined := b.next, b.next != nil
	if !joined {
		mine = &batch[T]{done: make(chan struct{})}
		b.next = mine
	}
	mine.items = append(mine.items, item)
	b.mu.Unlock()
	if joined {
		<-mine.done
		return mine.err
	}
	begun := false
	mine.err = errNotWritten // unless the write returns: those who joined must not wait for ever
	defer close(mine.done)
	mine.err = db.write(context.WithoutCancel(ctx), what, func(ctx context.Context, tx *sql.Tx) error {
		begun = true
		b.close()
		return do(ctx, tx, mine.items)
	})
	if !begun {
		b.close()
	}
	return mine.err
}

// close lets the next item begin another batch.
func (b *batches[T]) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = nil
}
