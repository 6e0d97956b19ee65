package jobtest

import (
	"fmt"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/conformance"
)

// clip is a result with a length of 4.96 seconds. At 0.05 per second it costs 0.248.
var clip = job.Result{
	Blob: "jobs/a/result-n1", MIME: "video/mp4", Size: 3 << 20, SHA256: "e3b0c44298fc1c149afbf4c8996fb924",
	Duration: 4960 * time.Millisecond,
}

const costOfClip = 248_000_000

func (s *suite) priced() job.Job {
	s.Helper()
	j := s.new(job.VideoLane, "acme")
	j.Request.Price = &catalog.MediaPrice{Per: catalog.PerSecond, Millionths: 50_000, Currency: "EUR"}
	conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
	return s.start(j.ID, "n1", s.at(1))
}

func (s *suite) bill(accepted, completed, cost int64) {
	s.Helper()
	totals, err := s.Usage.Totals(s.ctx, "acme", "2000-01-01", "9999-12-31", usage.All)
	conformance.OK(s, err)
	s.same("usage", totals, []usage.Total{{
		Day: usage.DayOf(s.now), Model: "gen-2.5", Key: "key_0123456789ab",
		Counts: usage.Counts{Jobs: accepted, JobsCompleted: completed, Cost: cost},
	}})
}

var billTests = []test{
	{"count a completed job and its cost once, however often its end is reported", func(s *suite) {
		j := s.priced()
		s.bill(1, 0, 0)
		for range 3 {
			conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", clip, s.at(2)))
			s.bill(1, 1, costOfClip)
		}
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", clip, j.Deadline.Add(time.Hour)))
		conformance.OK(s, s.Store.Forget(s.ctx, j.ID))
		s.bill(1, 1, costOfClip)
	}},
	{"count a job without a price as completed", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", clip, s.at(2)))
		s.bill(1, 1, 0)
	}},
	{"count on the day on which the job was accepted", func(s *suite) {
		j := s.new(job.VideoLane, "acme")
		j.Request.Price = &catalog.MediaPrice{Per: catalog.PerEdit, Millionths: 20_000, Currency: "EUR"}
		j.CreatedAt = s.now.Truncate(24 * time.Hour).Add(24*time.Hour - time.Second)
		j.Deadline = j.CreatedAt.Add(job.MaxAge)
		conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
		s.start(j.ID, "n1", j.CreatedAt)
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", clip, j.CreatedAt.Add(time.Minute)))
		s.bill(1, 1, 20_000_000)
	}},
	{"charge nothing for a job that does not complete", func(s *suite) {
		overdue, cancelled, failed := s.priced(), s.priced(), s.priced()
		_, err := s.Store.Expire(s.ctx, overdue.ID, overdue.Deadline)
		conformance.OK(s, err)
		conformance.OK(s, s.Runs.Fail(s.ctx, cancelled.ID, "", job.CancelledFailure(), s.at(2)))
		conformance.OK(s, s.Runs.Fail(s.ctx, failed.ID, "n1", broken, s.at(2)))
		for _, j := range []job.Job{overdue, cancelled, failed} {
			conformance.Fails(s, s.Runs.Complete(s.ctx, j.ID, "n1", clip, s.at(3)), fault.Conflict)
		}
		late, lost := s.priced(), s.priced()
		conformance.Fails(s, s.Runs.Complete(s.ctx, late.ID, "n1", clip, late.Deadline), fault.Conflict)
		s.start(lost.ID, "n2", s.at(2))
		conformance.Fails(s, s.Runs.Complete(s.ctx, lost.ID, "n1", clip, s.at(3)), fault.Conflict)
		s.bill(5, 0, 0)
	}},
	{"count a job once if many goroutines complete it", func(s *suite) {
		j := s.priced()
		for _, err := range conformance.Race(racers, func(int) error {
			return s.Runs.Complete(s.ctx, j.ID, "n1", clip, s.at(2))
		}) {
			conformance.OK(s, err)
		}
		s.bill(1, 1, costOfClip)
	}},
	{"count a job that is concurrently completed, cancelled and expired only if it completed", func(s *suite) {
		j := s.priced()
		conformance.Race(racers, func(i int) error {
			switch i % 3 {
			case 0:
				return s.Runs.Complete(s.ctx, j.ID, "n1", clip, s.at(2))
			case 1:
				return s.Runs.Fail(s.ctx, j.ID, "", job.CancelledFailure(), s.at(2))
			}
			_, err := s.Store.Expire(s.ctx, j.ID, j.Deadline)
			return err
		})
		if s.get(j.ID).Status == job.Completed {
			s.bill(1, 1, costOfClip)
		} else {
			s.bill(1, 0, 0)
		}
	}},
	{"count all jobs that complete concurrently", func(s *suite) {
		jobs := make([]job.Job, racers)
		for i := range jobs {
			jobs[i] = s.priced()
		}
		for i, err := range conformance.Race(racers, func(i int) error {
			return s.Runs.Complete(s.ctx, jobs[i].ID, "n1", clip, s.at(2))
		}) {
			if err != nil {
				s.Error(fmt.Sprint("job ", i), err)
			}
		}
		s.bill(racers, racers, racers*costOfClip)
	}},
}
