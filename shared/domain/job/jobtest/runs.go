package jobtest

import (
	"errors"
	"fmt"
	"math"
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

var startTests = []test{
	{"makes the job processing and counts the run", func(s *suite) {
		j := s.accept()
		want := j
		want.Status, want.Runs, want.Nonce, want.StartedAt = job.Processing, 1, "n1", s.at(1)
		s.same("job", s.start(j.ID, "n1", s.at(1)), want)
		s.unchanged(want)
	}},
	{"under its own nonce succeeds and is counted once", func(s *suite) {
		j := s.accept()
		first := s.start(j.ID, "n1", s.at(1))
		s.same("job", s.start(j.ID, "n1", s.at(2)), first)
		s.unchanged(first)
	}},
	{"again invalidates the previous run but keeps its start and progress", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Progress(s.ctx, j.ID, "n1", 0.5))
		got := s.start(j.ID, "n2", s.at(2))
		s.same("runs", got.Runs, 2)
		s.same("start of the first run", got.StartedAt, s.at(1))
		s.same("progress", got.Progress, 0.5)
		conformance.Fails(s, s.Runs.Progress(s.ctx, j.ID, "n1", 0.6), fault.Conflict)
		conformance.OK(s, s.Runs.Progress(s.ctx, j.ID, "n2", 0.6))
	}},
	{"is rejected after the last run, and changes nothing", func(s *suite) {
		j := s.accept()
		for run := range job.MaxRuns {
			s.start(j.ID, fmt.Sprint("n", run), s.at(1))
		}
		before := s.get(j.ID)
		_, err := s.Runs.Start(s.ctx, j.ID, "late", s.at(2))
		s.is(err, job.ErrNoRunsLeft)
		s.unchanged(before)
	}},
	{"under the nonce of the last run succeeds", func(s *suite) {
		j := s.accept()
		for run := range job.MaxRuns {
			s.start(j.ID, fmt.Sprint("n", run), s.at(1))
		}
		got := s.start(j.ID, fmt.Sprint("n", job.MaxRuns-1), s.at(2))
		s.same("runs", got.Runs, job.MaxRuns)
	}},
	{"is rejected at the deadline, and changes nothing", func(s *suite) {
		j := s.accept()
		_, err := s.Runs.Start(s.ctx, j.ID, "n1", j.Deadline)
		s.is(err, job.ErrOverdue)
		s.unchanged(j)
		s.start(j.ID, "n1", j.Deadline.Add(-time.Millisecond))
	}},
	{"is rejected if the job had to start earlier; otherwise extends its deadline", func(s *suite) {
		j := s.acceptWithin(5)
		refused, err := s.Runs.Start(s.ctx, j.ID, "n1", s.at(5))
		s.is(err, job.ErrOverdue)
		s.same("refused job", refused, j)
		s.unchanged(j)
		started := s.start(j.ID, "n1", s.at(4))
		s.same("deadline", started.Deadline, s.now.Add(job.MaxAge))
		got, err := s.Store.Expire(s.ctx, j.ID, s.at(6))
		conformance.OK(s, err)
		s.same("started job", got, started)
		conformance.OK(s, s.Runs.Release(s.ctx, j.ID, "n1"))
		s.same("deadline of the second run", s.start(j.ID, "n2", s.at(300)).Deadline, started.Deadline)
	}},
	{"of an unknown id returns not found", func(s *suite) {
		_, err := s.Runs.Start(s.ctx, "job_unknown", "n1", s.now)
		conformance.Fails(s, err, fault.NotFound)
	}},
	{"without a nonce is rejected, and changes nothing", func(s *suite) {
		j := s.accept()
		if _, err := s.Runs.Start(s.ctx, j.ID, "", s.at(1)); err == nil {
			s.Fatal("a run without a nonce was started")
		}
		s.unchanged(j)
	}},
}

func (s *suite) is(err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Fatalf("error %v, want %v", err, target)
	}
}

var progressTests = []test{
	{"rises and never falls", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		for _, step := range []struct{ report, want float64 }{
			{0, 0}, {0.25, 0.25}, {0.5, 0.5}, {0.125, 0.5}, {0.5, 0.5}, {-1, 0.5}, {math.NaN(), 0.5}, {1, 1}, {0.75, 1}, {2, 1},
		} {
			conformance.OK(s, s.Runs.Progress(s.ctx, j.ID, "n1", step.report))
			s.same(fmt.Sprint("progress after ", step.report), s.get(j.ID).Progress, step.want)
		}
	}},
	{"does not fall when another run starts", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Progress(s.ctx, j.ID, "n1", 0.5))
		s.start(j.ID, "n2", s.at(2))
		conformance.OK(s, s.Runs.Progress(s.ctx, j.ID, "n2", 0.125))
		s.same("progress", s.get(j.ID).Progress, 0.5)
	}},
	{"of a run that is not current is rejected", func(s *suite) {
		j := s.accept()
		conformance.Fails(s, s.Runs.Progress(s.ctx, j.ID, "n1", 0.5), fault.Conflict)
		conformance.Fails(s, s.Runs.Progress(s.ctx, j.ID, "", 0.5), fault.Conflict)
		s.unchanged(j)
		conformance.Fails(s, s.Runs.Progress(s.ctx, "job_unknown", "n1", 0.5), fault.Conflict)
	}},
}

var releaseTests = []test{
	{"undoes the run and leaves the job processing", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Progress(s.ctx, j.ID, "n1", 0.5))
		conformance.OK(s, s.Runs.Release(s.ctx, j.ID, "n1"))
		got := s.get(j.ID)
		s.same("runs", got.Runs, 0)
		s.same("status", got.Status, job.Processing)
		s.same("progress", got.Progress, 0.5)
	}},
	{"invalidates the nonce", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Release(s.ctx, j.ID, "n1"))
		released := s.get(j.ID)
		conformance.Fails(s, s.Runs.Progress(s.ctx, j.ID, "n1", 0.5), fault.Conflict)
		conformance.Fails(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(2)), fault.Conflict)
		conformance.Fails(s, s.Runs.Fail(s.ctx, j.ID, "n1", broken, s.at(2)), fault.Conflict)
		s.unchanged(released)
	}},
	{"twice releases one run", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		s.start(j.ID, "n2", s.at(2))
		conformance.OK(s, s.Runs.Release(s.ctx, j.ID, "n2"))
		conformance.OK(s, s.Runs.Release(s.ctx, j.ID, "n2"))
		s.same("runs", s.get(j.ID).Runs, 1)
	}},
	{"allows as many new runs as were released", func(s *suite) {
		j := s.accept()
		for try := range 3 * job.MaxRuns {
			nonce := fmt.Sprint("n", try)
			s.start(j.ID, nonce, s.at(1))
			conformance.OK(s, s.Runs.Release(s.ctx, j.ID, nonce))
		}
		s.same("runs", s.start(j.ID, "last", s.at(2)).Runs, 1)
	}},
	{"of a run that is not current changes nothing and returns no error", func(s *suite) {
		j := s.accept()
		conformance.OK(s, s.Runs.Release(s.ctx, j.ID, "n1"))
		conformance.OK(s, s.Runs.Release(s.ctx, j.ID, ""))
		s.unchanged(j)
		s.start(j.ID, "n1", s.at(1))
		started := s.start(j.ID, "n2", s.at(2))
		conformance.OK(s, s.Runs.Release(s.ctx, j.ID, "n1"))
		s.unchanged(started)
		conformance.OK(s, s.Runs.Release(s.ctx, "job_unknown", "n1"))
	}},
}

var completeTests = []test{
	{"ends the job with its result and full progress", func(s *suite) {
		j := s.accept()
		want := s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(2)))
		want.Status, want.Progress, want.CompletedAt, want.Result = job.Completed, 1, s.at(2), &result
		s.same("record", s.get(j.ID), want)
	}},
	{"repeated succeeds", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(2)))
		completed := s.get(j.ID)
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(3)))
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, j.Deadline.Add(time.Hour)))
		s.unchanged(completed)
	}},
	{"of a run that is not current is rejected, and changes nothing", func(s *suite) {
		j := s.accept()
		conformance.Fails(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(1)), fault.Conflict)
		conformance.Fails(s, s.Runs.Complete(s.ctx, j.ID, "", result, s.at(1)), fault.Conflict)
		s.unchanged(j)
		s.start(j.ID, "n1", s.at(1))
		started := s.start(j.ID, "n2", s.at(2))
		conformance.Fails(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(3)), fault.Conflict)
		s.unchanged(started)
		conformance.Fails(s, s.Runs.Complete(s.ctx, "job_unknown", "n1", result, s.at(1)), fault.Conflict)
	}},
	{"is rejected at the deadline, and changes nothing", func(s *suite) {
		j := s.accept()
		started := s.start(j.ID, "n1", s.at(1))
		conformance.Fails(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, j.Deadline), fault.Conflict)
		s.unchanged(started)
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, j.Deadline.Add(-time.Millisecond)))
	}},
}

var failTests = []test{
	{"ends the job with the failure", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Progress(s.ctx, j.ID, "n1", 0.5))
		conformance.OK(s, s.Runs.Fail(s.ctx, j.ID, "n1", broken, s.at(2)))
		got := s.get(j.ID)
		s.same("status", got.Status, job.Failed)
		s.same("failure", got.Failure, &broken)
		s.same("end", got.CompletedAt, s.at(2))
		s.same("progress", got.Progress, 0.5)
		s.same("result", got.Result, (*job.Result)(nil))
	}},
	{"without a nonce ends the job during any run", func(s *suite) {
		for _, runs := range []int{0, 1, 3} {
			j := s.accept()
			for run := range runs {
				s.start(j.ID, fmt.Sprint("n", run), s.at(1))
			}
			lost := job.WorkerLostFailure()
			conformance.OK(s, s.Runs.Fail(s.ctx, j.ID, "", lost, s.at(2)))
			got := s.get(j.ID)
			s.same("status", got.Status, job.Failed)
			s.same("failure", got.Failure, &lost)
		}
	}},
	{"repeated succeeds", func(s *suite) {
		for _, nonce := range []string{"n1", ""} {
			j := s.accept()
			s.start(j.ID, "n1", s.at(1))
			conformance.OK(s, s.Runs.Fail(s.ctx, j.ID, nonce, broken, s.at(2)))
			failed := s.get(j.ID)
			conformance.OK(s, s.Runs.Fail(s.ctx, j.ID, nonce, broken, s.at(3)))
			s.unchanged(failed)
		}
	}},
	{"succeeds past the deadline if the job has not ended", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Fail(s.ctx, j.ID, "", job.TimeoutFailure(), j.Deadline.Add(time.Second)))
		s.same("code", s.get(j.ID).Failure.Code, job.TimedOut)
	}},
	{"of a run that is not current is rejected, and changes nothing", func(s *suite) {
		j := s.accept()
		conformance.Fails(s, s.Runs.Fail(s.ctx, j.ID, "n1", broken, s.at(1)), fault.Conflict)
		s.unchanged(j)
		s.start(j.ID, "n1", s.at(1))
		started := s.start(j.ID, "n2", s.at(2))
		conformance.Fails(s, s.Runs.Fail(s.ctx, j.ID, "n1", broken, s.at(3)), fault.Conflict)
		s.unchanged(started)
	}},
	{"of a run is rejected after a Fail without a nonce", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Fail(s.ctx, j.ID, "", job.WorkerLostFailure(), s.at(2)))
		conformance.Fails(s, s.Runs.Fail(s.ctx, j.ID, "n1", broken, s.at(3)), fault.Conflict)
	}},
	{"of an unknown id returns not found", func(s *suite) {
		conformance.Fails(s, s.Runs.Fail(s.ctx, "job_unknown", "n1", broken, s.now), fault.NotFound)
		conformance.Fails(s, s.Runs.Fail(s.ctx, "job_unknown", "", broken, s.now), fault.NotFound)
	}},
}

// terminalTests try every write on every kind of ended job.
var terminalTests = []test{
	{"jobs never change", func(s *suite) {
		ends := map[string]func(id string, deadline time.Time) error{
			"completed": func(id string, _ time.Time) error { return s.Runs.Complete(s.ctx, id, "n1", result, s.at(2)) },
			"failed":    func(id string, _ time.Time) error { return s.Runs.Fail(s.ctx, id, "n1", broken, s.at(2)) },
			"reaped":    func(id string, _ time.Time) error { return s.Runs.Fail(s.ctx, id, "", broken, s.at(2)) },
			"expired": func(id string, deadline time.Time) error {
				_, err := s.Store.Expire(s.ctx, id, deadline)
				return err
			},
		}
		other := job.Failure{Code: job.Cancelled, Message: "Another end."}
		for name, end := range ends {
			j := s.accept()
			s.start(j.ID, "n1", s.at(1))
			conformance.OK(s, end(j.ID, j.Deadline))
			ended := s.get(j.ID)

			_, err := s.Runs.Start(s.ctx, j.ID, "n2", s.at(3))
			s.refused(name, "Start", err)
			s.refused(name, "Progress", s.Runs.Progress(s.ctx, j.ID, "n1", 0.75))
			s.refused(name, "Complete of another run", s.Runs.Complete(s.ctx, j.ID, "n2", result, s.at(3)))
			s.refused(name, "Fail of another run", s.Runs.Fail(s.ctx, j.ID, "n2", other, s.at(3)))
			s.refused(name, "Fail of any run", s.Runs.Fail(s.ctx, j.ID, "", other, s.at(3)))
			if name != "completed" {
				s.refused(name, "Complete", s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(3)))
			} else {
				s.refused(name, "Fail", s.Runs.Fail(s.ctx, j.ID, "n1", other, s.at(3)))
			}
			conformance.OK(s, s.Runs.Release(s.ctx, j.ID, "n1"))
			conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
			_, err = s.Store.Expire(s.ctx, j.ID, j.Deadline.Add(time.Hour))
			conformance.OK(s, err)
			s.unchanged(ended)
		}
	}},
}

// refused checks that a write to an ended job returns a plain conflict. Any other error could
// suggest that the job may still run.
func (s *suite) refused(end, write string, err error) {
	s.Helper()
	if !fault.Is(err, fault.Conflict) || errors.Is(err, job.ErrOverdue) || errors.Is(err, job.ErrNoRunsLeft) {
		s.Errorf("%s on a job that is %s: error %v, want a plain conflict", write, end, err)
	}
}
