package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"
)

// forgetEvery is how often idle names are dropped.
const forgetEvery = time.Minute

// names holds a value per name, each with its own lock, so that no name waits for another.
type names[T any] struct {
	byName sync.Map // of *held[T]
	// started is when it was created. forgotten is how long after that names were last dropped.
	started   time.Time
	forgotten atomic.Int64
}

type held[T any] struct {
	sync.Mutex
	value T
	// gone means that the name was dropped.
	gone bool
}

// lock returns the value of the name, locked; the caller unlocks it.
func (n *names[T]) lock(name string) *held[T] {
	for {
		found, ok := n.byName.Load(name)
		if !ok {
			found, _ = n.byName.LoadOrStore(name, new(held[T]))
		}
		h := found.(*held[T])
		h.Lock()
		if !h.gone {
			return h
		}
		h.Unlock()
	}
}

// forget drops names with an idle value, unless it did so recently. A name in use stays.
func (n *names[T]) forget(now time.Time, idle func(*T) bool) {
	since, last := now.Sub(n.started), n.forgotten.Load()
	if since-time.Duration(last) < forgetEvery || !n.forgotten.CompareAndSwap(last, int64(since)) {
		return
	}
	n.byName.Range(func(name, found any) bool {
		h := found.(*held[T])
		if h.TryLock() {
			if idle(&h.value) {
				h.gone = true
				n.byName.Delete(name)
			}
			h.Unlock()
		}
		return true
	})
}
