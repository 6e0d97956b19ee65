package ratelimit

import "sync"

// Open counts, by name, how many of something are open. The zero value is ready to use.
type Open struct {
	mu     sync.Mutex
	counts map[string]int
}

// Most is the maximum count for Name. 0 means no limit.
type OpenLimit struct {
	Name string
	Most int
}

// Enter adds one to the count of every name until the caller calls leave. If a limit is reached, ok
// is false and nothing is counted.
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
