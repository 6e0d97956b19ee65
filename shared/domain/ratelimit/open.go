package ratelimit

import "sync"

// Open counts open things by name. The zero value is ready to use.
type Open struct {
	mu     sync.Mutex
	counts map[string]int
}

// Bound is a limit of open things under a name; 0 means no limit.
type Bound struct {
	Name string
	Most int
}

// Enter counts one under every name, and returns the function that ends it, which must be called
// once. At a limit, it counts nothing and ok is false.
func (o *Open) Enter(bounds ...Bound) (leave func(), ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, bound := range bounds {
		if bound.Most > 0 && o.counts[bound.Name] >= bound.Most {
			return nil, false
		}
	}
	if o.counts == nil {
		o.counts = map[string]int{}
	}
	for _, bound := range bounds {
		o.counts[bound.Name]++
	}
	return func() { o.leave(bounds) }, true
}

func (o *Open) leave(bounds []Bound) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, bound := range bounds {
		if o.counts[bound.Name]--; o.counts[bound.Name] == 0 {
			delete(o.counts, bound.Name)
		}
	}
}
