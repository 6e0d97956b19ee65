package jobtest

import (
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

var retentionTests = []test{
	{"returns overdue jobs that have not ended", func(s *suite) {
		pending, processing, ended := s.accept(), s.accept(), s.accept()
		s.start(processing.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Fail(s.ctx, ended.ID, "", broken, s.at(1)))
		later := s.new(job.ImageLane, "zoo")
		later.Deadline = pending.Deadline.Add(time.Millisecond)
		conformance.OK(s, s.Store.Accept(s.ctx, later, 0))

		s.overdue(pending.Deadline.Add(-time.Millisecond), 10)
		s.overdue(pending.Deadline, 10, pending.ID, processing.ID)
		s.overdue(later.Deadline, 10, pending.ID, processing.ID, later.ID)
		ids, err := s.Retention.Overdue(s.ctx, later.Deadline, 2)
		conformance.OK(s, err)
		s.same("how many of at most 2", len(ids), 2)
	}},
	{"returns ended jobs in the order of their ids, page by page", func(s *suite) {
		first, open, second, third, recent := s.accept(), s.accept(), s.accept(), s.accept(), s.accept()
		s.start(first.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Complete(s.ctx, first.ID, "n1", result, s.at(9)))
		conformance.OK(s, s.Runs.Fail(s.ctx, second.ID, "", broken, s.at(5)))
		conformance.OK(s, s.Runs.Fail(s.ctx, third.ID, "", broken, s.at(7)))
		conformance.OK(s, s.Runs.Fail(s.ctx, recent.ID, "", broken, s.at(10)))
		s.start(open.ID, "n1", s.at(1))

		s.ended(s.at(10), "", 10, first.ID, second.ID, third.ID)
		s.ended(s.at(10), "", 2, first.ID, second.ID)
		s.ended(s.at(10), second.ID, 2, third.ID)
		s.ended(s.at(10), third.ID, 2)
		s.ended(s.at(7), "", 10, second.ID)
		jobs, err := s.Retention.Ended(s.ctx, s.at(10), "", 1)
		conformance.OK(s, err)
		s.same("whole job", jobs[0], s.get(first.ID))
	}},
	{"knows jobs until they are forgotten", func(s *suite) {
		j := s.accept()
		s.known(j.ID, true)
		s.known("job_unknown", false)
		conformance.OK(s, s.Runs.Fail(s.ctx, j.ID, "", broken, s.at(1)))
		s.known(j.ID, true)
		conformance.OK(s, s.Store.Forget(s.ctx, j.ID))
		s.known(j.ID, false)
		s.ended(s.at(10), "", 10)
	}},
}

// overdue checks which jobs Overdue returns, in any order.
func (s *suite) overdue(now time.Time, limit int, want ...string) {
	s.Helper()
	ids, err := s.Retention.Overdue(s.ctx, now, limit)
	conformance.OK(s, err)
	got := map[string]bool{}
	for _, id := range ids {
		got[id] = true
	}
	expected := map[string]bool{}
	for _, id := range want {
		expected[id] = true
	}
	s.same("overdue", got, expected)
}

func (s *suite) ended(before time.Time, after string, limit int, want ...string) {
	s.Helper()
	jobs, err := s.Retention.Ended(s.ctx, before, after, limit)
	conformance.OK(s, err)
	var got []string
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	s.same("ended", got, want)
}

func (s *suite) known(id string, want bool) {
	s.Helper()
	got, err := s.Retention.Known(s.ctx, id)
	conformance.OK(s, err)
	s.same("known", got, want)
}
