package prometheus

import "sync"

// series caches the series of each set of labels, because a lookup hashes and compares all of them.
// The number of sets must be small, because none is ever removed.
type series[Labels comparable, Series any] struct {
	known sync.Map // of Series, by Labels
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
