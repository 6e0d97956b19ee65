package jobtest

import (
	"fmt"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

const racers = 50

var raceTests = []test{
	{"accept exactly as many jobs as the limit says", func(s *suite) {
		const limit = 7
		jobs := make([]job.Job, racers)
		for i := range jobs {
			jobs[i] = s.new(job.VideoLane, "acme")
		}
		won := conformance.Winners(
			s, conformance.Race(racers, func(i int) error { return s.Store.Accept(s.ctx, jobs[i], limit) }), fault.Limited,
		)
		s.same("jobs accepted", len(won), limit)
		s.backlog(job.VideoLane, "acme", job.Backlog{Jobs: limit, AccountJobs: limit, AccountOpen: limit})
		for _, i := range won {
			s.unchanged(jobs[i])
		}
	}},
	{"accept one id once", func(s *suite) {
		j := s.new(job.VideoLane, "acme")
		won := conformance.Winners(s,
			conformance.Race(racers, func(int) error { return s.Store.Accept(s.ctx, j, 1) }), fault.Limited)
		s.same("calls that succeeded", len(won), racers)
		s.backlog(job.VideoLane, "acme", job.Backlog{Jobs: 1, AccountJobs: 1, AccountOpen: 1})
	}},
	{"start no more than MaxRuns runs", func(s *suite) {
		j := s.accept()
		won := conformance.Winners(s, conformance.Race(racers, func(i int) error {
			_, err := s.Runs.Start(s.ctx, j.ID, fmt.Sprint("n", i), s.at(1))
			return err
		}), fault.Conflict)
		s.same("runs started", len(won), job.MaxRuns)
		s.same("runs recorded", s.get(j.ID).Runs, job.MaxRuns)
	}},
	{"count a run once if it is started many times", func(s *suite) {
		j := s.accept()
		for _, err := range conformance.Race(racers, func(int) error {
			_, err := s.Runs.Start(s.ctx, j.ID, "n1", s.at(1))
			return err
		}) {
			conformance.OK(s, err)
		}
		s.same("runs recorded", s.get(j.ID).Runs, 1)
	}},
	{"record exactly one of several concurrent ends", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		won := conformance.Winners(s, conformance.Race(racers, func(i int) error {
			switch i % 3 {
			case 0:
				return s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(2))
			case 1:
				return s.Runs.Fail(s.ctx, j.ID, "", job.Failure{Code: job.Cancelled, Message: fmt.Sprint(i)}, s.at(2))
			default:
				return s.Runs.Fail(s.ctx, j.ID, "n1", job.Failure{Code: job.EngineError, Message: fmt.Sprint(i)}, s.at(2))
			}
		}), fault.Conflict)
		got := s.get(j.ID)
		if len(won) == 0 {
			s.Fatal("nobody ended the job")
		}
		for _, i := range won {
			// All completions are equal; each failure has a different message.
			if completed := i%3 == 0; completed != (got.Status == job.Completed) ||
				!completed && got.Failure.Message != fmt.Sprint(i) {
				s.Errorf("racer %d won, and the job is %s with failure %v", i, got.Status, got.Failure)
			}
		}
	}},
	{"end an overdue job or its run, never both", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		errs := conformance.Race(racers, func(i int) error {
			if i%2 == 0 {
				return s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(2))
			}
			_, err := s.Store.Expire(s.ctx, j.ID, j.Deadline)
			return err
		})
		got := s.get(j.ID)
		for i, err := range errs {
			if i%2 == 1 {
				conformance.OK(s, err)
			} else if (err == nil) != (got.Status == job.Completed) {
				s.Errorf("Complete returned %v, and the job is %s", err, got.Status)
			}
		}
	}},
	{"keep the highest progress", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		for _, err := range conformance.Race(racers, func(i int) error {
			return s.Runs.Progress(s.ctx, j.ID, "n1", float64(i)/64)
		}) {
			conformance.OK(s, err)
		}
		s.same("progress", s.get(j.ID).Progress, float64(racers-1)/64)
	}},
}
