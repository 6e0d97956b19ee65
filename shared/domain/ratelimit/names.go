package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"
)

// forgetEvery is the interval at which idle names are dropped.
const forgetEvery = time.Minute

// names holds a value per name. Each value has its own lock, so names do not wait for each other.
type names[T any] struct {
	byName sync.Map // values are *held[T]
	// started is the creation time. forgotten is the time from started to the last removal of idle
	// names.
	started   time.Time
	forgotten atomic.Int64
}

type held[T any] struct {
	sync.Mutex
	value T
	// gone means that the name was dropped.
	gone bool
}

// lock returns the locked value of the name. The caller must unlock it.
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

// forget drops names with an idle value, unless it did so recently. It skips locked names.
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
