package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"
)

// forgetEvery is how often names are looked through for those that say the same
// as none: they need no memory.
const forgetEvery = time.Minute

// names keeps what is counted by name, each under a lock of its own, so that no
// name ever waits for another.
type names[T any] struct {
	byName sync.Map // of *held[T]
	// started is when there were none, and forgotten how long after that they were
	// looked through last.
	started   time.Time
	forgotten atomic.Int64
}

// held is what is counted of a name.
type held[T any] struct {
	sync.Mutex
	value T
	// gone reports that the name was forgotten meanwhile.
	gone bool
}

// lock returns what is counted of the name, for the caller to unlock.
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

// forget drops the names for which idle holds, where that was not done lately.
// A name that is in use meanwhile stays.
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
