package sqlite

import (
	"context"
	"errors"
	"sync"
)

// groups gathers the writes of concurrent calls into shared transactions: calls
// that arrive while one transaction runs go into the next, so that all of them
// share the cost of its commit.
type groups[T any] struct {
	mu sync.Mutex
	// next is the group that accepts items, nil if there is none.
	next *group[T]
}

// errNotWritten is the error of a group whose write panicked.
var errNotWritten = errors.New("sqlite: the group was not written")

// group is the content of one transaction.
type group[T any] struct {
	items []T
	// done is closed once err holds the result of the transaction.
	done chan struct{}
	err  error
}

// write writes the item in a transaction of db and returns once that has ended; do
// gets all items of the transaction. The call that starts a group writes it for
// those that join, so its context does not end the transaction.
func (b *groups[T]) write(ctx context.Context, db *DB, what string, item T,
	do func(ctx context.Context, tx *transaction, items []T) error) error {
	b.mu.Lock()
	mine, joined := b.next, b.next != nil
	if !joined {
		mine = &group[T]{done: make(chan struct{})}
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
	mine.err = db.write(context.WithoutCancel(ctx), what, func(ctx context.Context, tx *transaction) error {
		begun = true
		b.close()
		return do(ctx, tx, mine.items)
	})
	if !begun {
		b.close()
	}
	return mine.err
}

// close makes the next item start another group.
func (b *groups[T]) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = nil
}
