package jobtest

import (
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

var forgetTests = []test{
	{"deletes the record of a job that has ended, and may be repeated", func(s *suite) {
		completed, failed, kept := s.accept(), s.accept(), s.accept()
		s.start(completed.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Complete(s.ctx, completed.ID, "n1", result, s.at(2)))
		conformance.OK(s, s.Runs.Fail(s.ctx, failed.ID, "", broken, s.at(1)))
		conformance.OK(s, s.Runs.Fail(s.ctx, kept.ID, "", broken, s.at(1)))
		for range 2 {
			for _, j := range []job.Job{completed, failed} {
				conformance.OK(s, s.Store.Forget(s.ctx, j.ID))
				_, err := s.Store.Get(s.ctx, j.ID)
				conformance.Fails(s, err, fault.NotFound)
			}
		}
		s.listed("remaining jobs", job.Filter{}, 10, kept.ID)
		backlog, err := s.Store.Backlog(s.ctx, job.VideoLane, "acme")
		conformance.OK(s, err)
		s.same("open jobs of the account", backlog.AccountJobs, 0)
	}},
	{"leaves a job unchanged that has not ended", func(s *suite) {
		pending, processing := s.accept(), s.start(s.accept().ID, "n1", s.at(1))
		for _, j := range []job.Job{pending, processing} {
			conformance.OK(s, s.Store.Forget(s.ctx, j.ID))
			s.unchanged(j)
		}
	}},
	{"of an unknown job returns no error", func(s *suite) {
		conformance.OK(s, s.Store.Forget(s.ctx, "job_unknown"))
	}},
	{"rejects later writes to the job", func(s *suite) {
		j := s.start(s.accept().ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Fail(s.ctx, j.ID, "", broken, s.at(1)))
		conformance.OK(s, s.Store.Forget(s.ctx, j.ID))
		conformance.Fails(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(2)), fault.Conflict)
		conformance.Fails(s, s.Runs.Progress(s.ctx, j.ID, "n1", 0.5), fault.Conflict)
		_, err := s.Store.Get(s.ctx, j.ID)
		conformance.Fails(s, err, fault.NotFound)
	}},
}
