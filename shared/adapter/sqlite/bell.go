package sqlite

import "sync"

// bell wakes everyone who waits for it.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

func newBell() *bell { return &bell{next: make(chan struct{})} }

// wait gives a channel that is closed when the bell next rings. A waiter takes
// it before it looks for work, so that no ring falls in between.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}

// ring wakes all who wait.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.next)
	b.next = make(chan struct{})
}
