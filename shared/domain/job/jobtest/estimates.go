package jobtest

import (
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

var estimateTests = []test{
	{"are empty before any are published", func(s *suite) {
		s.estimated(nil)
	}},
	{"are the latest published estimates", func(s *suite) {
		first := job.Estimates{
			{EditKind: job.EditKind{Model: "gen-2.5", Resolution: "720p"},
				Points: []job.EstimatePoint{{Length: 1, Takes: 20.125}, {Length: 300, Takes: 5000}}},
			{EditKind: job.EditKind{Model: "gen-2.5", Resolution: "720p", Reference: true},
				Points: []job.EstimatePoint{{Length: 1, Takes: 40}}},
		}
		second := job.Estimates{{EditKind: job.EditKind{Model: "gen-image-2", Resolution: "480p"},
			Points: []job.EstimatePoint{{Takes: 3}}}}
		conformance.OK(s, s.Estimates.PublishEstimates(s.ctx, first, s.now))
		s.estimated(first)
		for range 2 {
			conformance.OK(s, s.Estimates.PublishEstimates(s.ctx, second, s.at(1)))
			s.estimated(second)
		}
	}},
	{"are empty after an empty list is published", func(s *suite) {
		for range 2 {
			conformance.OK(s, s.Estimates.PublishEstimates(s.ctx, nil, s.now))
			s.estimated(nil)
		}
		conformance.OK(s, s.Estimates.PublishEstimates(s.ctx,
			job.Estimates{{EditKind: job.EditKind{Model: "gen-2.5"}, Points: []job.EstimatePoint{{Takes: 1}}}}, s.now))
		conformance.OK(s, s.Estimates.PublishEstimates(s.ctx, job.Estimates{}, s.at(1)))
		s.estimated(nil)
	}},
	{"do not appear in the list of jobs", func(s *suite) {
		j := s.accept()
		conformance.OK(s, s.Estimates.PublishEstimates(s.ctx,
			job.Estimates{{EditKind: job.EditKind{Model: "gen-2.5"}, Points: []job.EstimatePoint{{Takes: 1}}}}, s.now))
		s.listed("jobs", job.Filter{}, 10, j.ID)
		s.unchanged(j)
	}},
}

func (s *suite) estimated(want job.Estimates) {
	s.Helper()
	got, err := s.Estimates.Estimates(s.ctx)
	conformance.OK(s, err)
	conformance.SameList(s, "estimates", got, want)
}
