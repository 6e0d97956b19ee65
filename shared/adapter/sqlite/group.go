package sqlite

import (
	"context"
	"errors"
	"sync"
)

// groups lets concurrent writes share transactions. Calls that arrive while a transaction runs go
// into the next one.
type groups[T any] struct {
	mu sync.Mutex
	// next is the group that accepts items, or nil.
	next *group[T]
}

var errNotWritten = errors.New("sqlite: the group was not written")

type group[T any] struct {
	items []T
	// done is closed once err holds the result of the transaction.
	done chan struct{}
	err  error
}

// write writes the item in a shared transaction and returns when that has ended. do receives all
// items of the transaction. The context of the first caller does not end the transaction, because
// others depend on it.
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

func (b *groups[T]) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = nil
}
