package realtime

import (
	"context"
	"sync"
)

// turns gives one turn at a time to each name. The zero value is ready to use.
type turns struct {
	mu    sync.Mutex
	names map[string]*turn
}

// turn is a name's. It is forgotten once nobody has it or waits for it.
type turn struct {
	taken chan struct{}
	users int
}

// take waits for the name's turn. The caller ends it by calling end.
//
// Errors: the context's.
func (t *turns) take(ctx context.Context, name string) (end func(), err error) {
	t.mu.Lock()
	if t.names == nil {
		t.names = map[string]*turn{}
	}
	own := t.names[name]
	if own == nil {
		own = &turn{taken: make(chan struct{}, 1)}
		t.names[name] = own
	}
	own.users++
	t.mu.Unlock()
	select {
	case own.taken <- struct{}{}:
		return func() {
			<-own.taken
			t.leave(name, own)
		}, nil
	case <-ctx.Done():
		t.leave(name, own)
		return nil, ctx.Err()
	}
}

func (t *turns) leave(name string, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.names, name)
	}
}
