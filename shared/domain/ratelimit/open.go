package ratelimit

import "sync"

// Open counts open things by name. The zero value is ready to use.
type Open struct {
	mu     sync.Mutex
	counts map[string]int
}

// OpenLimit is a limit of open things under a name; 0 means no limit.
type OpenLimit struct {
	Name string
	Most int
}

// Enter counts one under every name, and returns the function that ends it, which must be called
// once. At a limit, it counts nothing and ok is false.
func (o *Open) Enter(limits ...OpenLimit) (leave func(), ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, limit := range limits {
		if limit.Most > 0 && o.counts[limit.Name] >= limit.Most {
			return nil, false
		}
	}
	if o.counts == nil {
		o.counts = map[string]int{}
	}
	for _, limit := range limits {
		o.counts[limit.Name]++
	}
	return func() { o.leave(limits) }, true
}

func (o *Open) leave(limits []OpenLimit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, limit := range limits {
		if o.counts[limit.Name]--; o.counts[limit.Name] == 0 {
			delete(o.counts, limit.Name)
		}
	}
}
