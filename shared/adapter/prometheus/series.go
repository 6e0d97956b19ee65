package prometheus

import "sync"

// series caches the series for each combination of labels, because Prometheus's lookup hashes and
// compares all labels. The number of combinations must be small, because they are never removed.
type series[Labels comparable, Series any] struct {
	mu    sync.RWMutex
	known map[Labels]Series
	find  func(Labels) Series
}

func newSeries[Labels comparable, Series any](find func(Labels) Series) *series[Labels, Series] {
	return &series[Labels, Series]{known: map[Labels]Series{}, find: find}
}

func (s *series[Labels, Series]) of(labels Labels) Series {
	s.mu.RLock()
	known, ok := s.known[labels]
	s.mu.RUnlock()
	if ok {
		return known
	}
	found := s.find(labels)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[labels] = found
	return found
}
