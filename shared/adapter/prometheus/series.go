package prometheus

import "sync"

// series keeps the series that some labels name together, as each lookup by labels
// hashes and compares all of them. The labels must be as few as those of the
// metrics: nothing is ever forgotten.
type series[Labels comparable, Series any] struct {
	known sync.Map // of Series, by Labels
	find  func(Labels) Series
}

func newSeries[Labels comparable, Series any](find func(Labels) Series) *series[Labels, Series] {
	return &series[Labels, Series]{find: find}
}

// of returns the series of the labels.
func (s *series[Labels, Series]) of(labels Labels) Series {
	if known, ok := s.known.Load(labels); ok {
		return known.(Series)
	}
	found := s.find(labels)
	s.known.Store(labels, found)
	return found
}
