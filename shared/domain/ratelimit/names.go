package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"
)

const forgetEvery = time.Minute // how often idle names are removed

// Each value has its own lock, so that names do not wait for each other.
type names[K comparable, T any] struct {
	byName sync.Map // values are *held[T]
	// forgotten is when idle names were last removed, as the time since started.
	started   time.Time
	forgotten atomic.Int64
}

type held[T any] struct {
	sync.Mutex
	value T
	gone  bool // the name has been removed
}

// lock returns the name's value locked. The caller must unlock it.
func (n *names[K, T]) lock(name K) *held[T] {
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

// forget removes names whose value is idle and not locked. It does nothing if it ran recently.
func (n *names[K, T]) forget(now time.Time, idle func(*T) bool) {
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
