package prometheus

import "sync"

// series caches the series for each combination of labels, because Prometheus's lookup hashes and
// compares all labels. The number of combinations must be small, because they are never removed.
type series[Labels comparable, Series any] struct {
	known sync.Map // maps Labels to Series
	find  func(Labels) Series
}

func newSeries[Labels comparable, Series any](find func(Labels) Series) *series[Labels, Series] {
	return &series[Labels, Series]{find: find}
}

func (s *series[Labels, Series]) of(labels Labels) Series {
	if known, ok := s.known.Load(labels); ok {
		return known.(Series)
	}
	found := s.find(labels)
	s.known.Store(labels, found)
	return found
}
