package sqlite

import "sync"

type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns a channel that is closed when the bell rings next. Get it before checking for work,
// so that no ring is missed.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.next)
	b.next = make(chan struct{})
}
