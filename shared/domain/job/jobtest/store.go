package jobtest

import (
	"time"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/conformance"
)

var acceptTests = []test{
	{"records the job unchanged", func(s *suite) {
		j := s.accept()
		s.same("record", s.get(j.ID), j)
	}},
	{"records a minimal job unchanged", func(s *suite) {
		j := s.new(job.ImageLane, "acme")
		j.Seed, j.Request = 0, job.Request{}
		conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
		s.same("record", s.get(j.ID), j)
	}},
	{"of the same id succeeds and changes nothing", func(s *suite) {
		j := s.accept()
		again := j
		again.Account, again.Seed, again.Request.Prompt = "other", 1, "another"
		conformance.OK(s, s.Store.Accept(s.ctx, again, 0))
		s.same("record", s.get(j.ID), j)
	}},
	{"of the same id succeeds when the account is at its limit", func(s *suite) {
		j := s.accept()
		conformance.OK(s, s.Store.Accept(s.ctx, j, 1))
		s.same("record", s.get(j.ID), j)
	}},
	{"of the same id does not change a processing job", func(s *suite) {
		j := s.accept()
		started := s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
		s.unchanged(started)
	}},
	{"rejects a job over the account's limit and records nothing", func(s *suite) {
		conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), 2))
		conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), 2))
		refused := s.new(job.VideoLane, "acme")
		conformance.Fails(s, s.Store.Accept(s.ctx, refused, 2), fault.Limited)
		_, err := s.Store.Get(s.ctx, refused.ID)
		conformance.Fails(s, err, fault.NotFound)
	}},
	{"counts each job once in the usage of its account, by day and model", func(s *suite) {
		first := s.accept()
		s.accept()
		s.acceptFor(job.VideoLane, "zoo")
		other := s.new(job.ImageLane, "acme")
		other.Model = "gen-clip"
		conformance.OK(s, s.Store.Accept(s.ctx, other, 0))
		conformance.OK(s, s.Store.Accept(s.ctx, first, 0))
		conformance.Fails(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), 3), fault.Limited)
		conformance.OK(s, s.Runs.Fail(s.ctx, first.ID, "", broken, s.at(1)))
		conformance.OK(s, s.Store.Forget(s.ctx, first.ID))
		day := usage.DayOf(s.now)
		totals, err := s.Usage.Totals(s.ctx, "acme", day, day, usage.All)
		conformance.OK(s, err)
		s.same("usage", totals, []usage.Total{
			{Day: day, Model: "gen-2.5", Key: first.Key, Counts: usage.Counts{Jobs: 2}},
			{Day: day, Model: "gen-clip", Key: first.Key, Counts: usage.Counts{Jobs: 1}},
		})
	}},
	{"counts an account's jobs of every lane", func(s *suite) {
		conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.ImageLane, "acme"), 1))
		conformance.Fails(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), 1), fault.Limited)
	}},
	{"counts an account's jobs under each limit of its keys", func(s *suite) {
		const open, high = 40, 300
		for range open {
			conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), high))
		}
		backlog, err := s.Store.Backlog(s.ctx, job.VideoLane, "acme")
		conformance.OK(s, err)
		s.same("open jobs", backlog.AccountOpen, open)
		conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), open+1))
		conformance.Fails(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), open+1), fault.Limited)
		conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), high))
	}},
	{"does not count other accounts' jobs", func(s *suite) {
		conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), 1))
		conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "zoo"), 1))
	}},
	{"counts processing jobs, but not ended ones", func(s *suite) {
		first := s.accept()
		s.start(first.ID, "n1", s.at(1))
		conformance.Fails(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), 1), fault.Limited)
		conformance.OK(s, s.Runs.Complete(s.ctx, first.ID, "n1", result, s.at(2)))
		second := s.new(job.VideoLane, "acme")
		conformance.OK(s, s.Store.Accept(s.ctx, second, 1))
		conformance.OK(s, s.Runs.Fail(s.ctx, second.ID, "", broken, s.at(3)))
		third := s.new(job.VideoLane, "acme")
		conformance.OK(s, s.Store.Accept(s.ctx, third, 1))
		_, err := s.Store.Expire(s.ctx, third.ID, third.Deadline)
		conformance.OK(s, err)
		conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), 1))
	}},
	{"frees a place for each job that ends, however often a full account was rejected", func(s *suite) {
		const limit = 30
		open := make([]job.Job, limit)
		for i := range open {
			open[i] = s.new([]job.Lane{job.VideoLane, job.ImageLane}[i%2], "acme")
			conformance.OK(s, s.Store.Accept(s.ctx, open[i], limit))
		}
		full := func() {
			s.Helper()
			for range 3 {
				backlog, err := s.Store.Backlog(s.ctx, job.VideoLane, "acme")
				conformance.OK(s, err)
				s.same("open jobs", backlog.AccountOpen, limit)
				conformance.Fails(s, s.Store.Accept(s.ctx, s.new(job.VideoLane, "acme"), limit), fault.Limited)
			}
		}
		for i, end := range []func(id string) error{
			func(id string) error {
				s.start(id, "n1", s.at(1))
				return s.Runs.Complete(s.ctx, id, "n1", result, s.at(2))
			},
			func(id string) error { return s.Store.Fail(s.ctx, id, "", broken, s.at(2)) },
			func(id string) error {
				_, err := s.Store.Expire(s.ctx, id, open[0].Deadline)
				return err
			},
		} {
			full()
			conformance.OK(s, end(open[i].ID))
			conformance.OK(s, s.Store.Accept(s.ctx, s.new(job.ImageLane, "acme"), limit))
		}
		full()
	}},
	{"treats a limit of 0 as unlimited", func(s *suite) {
		for range 5 {
			s.accept()
		}
	}},
}

var getTests = []test{
	{"of an unknown id returns not found", func(s *suite) {
		_, err := s.Store.Get(s.ctx, "job_unknown")
		conformance.Fails(s, err, fault.NotFound)
	}},
	{"keeps times to the millisecond", func(s *suite) {
		j := s.new(job.VideoLane, "acme")
		j.CreatedAt = s.now.Add(time.Millisecond)
		j.Deadline = s.now.Add(job.MaxAge + 2*time.Millisecond)
		conformance.OK(s, s.Store.Accept(s.ctx, j, 0))
		s.start(j.ID, "n1", s.now.Add(3*time.Millisecond))
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.now.Add(4*time.Millisecond)))
		got := s.get(j.ID)
		for _, c := range []struct {
			what string
			got  time.Time
			want time.Duration
		}{
			{"creation", got.CreatedAt, time.Millisecond}, {"deadline", got.Deadline, job.MaxAge + 2*time.Millisecond},
			{"start", got.StartedAt, 3 * time.Millisecond}, {"end", got.CompletedAt, 4 * time.Millisecond},
		} {
			if !c.got.Equal(s.now.Add(c.want)) {
				s.Errorf("%s is %v after the start, want %v", c.what, c.got.Sub(s.now), c.want)
			}
		}
	}},
}

var expireTests = []test{
	{"ends an overdue job as timed out at its deadline, and returns it", func(s *suite) {
		for _, started := range []bool{false, true} {
			j := s.accept()
			if started {
				s.start(j.ID, "n1", s.at(1))
				conformance.OK(s, s.Runs.Progress(s.ctx, j.ID, "n1", 0.5))
			}
			got, err := s.Store.Expire(s.ctx, j.ID, j.Deadline.Add(time.Hour))
			conformance.OK(s, err)
			timeout := job.TimeoutFailure()
			s.same("status", got.Status, job.Failed)
			s.same("failure", got.Failure, &timeout)
			s.same("end", got.CompletedAt, j.Deadline)
			s.unchanged(got)
		}
	}},
	{"ends a job at exactly its deadline, not before", func(s *suite) {
		j := s.accept()
		got, err := s.Store.Expire(s.ctx, j.ID, j.Deadline.Add(-time.Millisecond))
		conformance.OK(s, err)
		s.same("job with time left", got, j)
		s.unchanged(j)
		got, err = s.Store.Expire(s.ctx, j.ID, j.Deadline)
		conformance.OK(s, err)
		s.same("status", got.Status, job.Failed)
	}},
	{"fails a job that did not start in time", func(s *suite) {
		j := s.acceptWithin(5)
		got, err := s.Store.Expire(s.ctx, j.ID, s.at(9))
		conformance.OK(s, err)
		s.same("failure", *got.Failure, job.StartTimeoutFailure())
		s.same("end", got.CompletedAt, s.at(5))
		s.unchanged(got)
		backlog, err := s.Store.Backlog(s.ctx, job.VideoLane, "acme")
		conformance.OK(s, err)
		s.same("open jobs", backlog.AccountOpen, 0)
	}},
	{"leaves an ended job unchanged", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(1))
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(2)))
		completed := s.get(j.ID)
		got, err := s.Store.Expire(s.ctx, j.ID, j.Deadline.Add(time.Hour))
		conformance.OK(s, err)
		s.same("completed job", got, completed)
		s.unchanged(completed)
	}},
	{"repeated returns the same", func(s *suite) {
		j := s.accept()
		first, err := s.Store.Expire(s.ctx, j.ID, j.Deadline)
		conformance.OK(s, err)
		second, err := s.Store.Expire(s.ctx, j.ID, j.Deadline.Add(time.Hour))
		conformance.OK(s, err)
		s.same("job", second, first)
	}},
	{"of an unknown id returns not found", func(s *suite) {
		_, err := s.Store.Expire(s.ctx, "job_unknown", s.now)
		conformance.Fails(s, err, fault.NotFound)
	}},
}

var backlogTests = []test{
	{"of an idle lane is empty", func(s *suite) {
		s.backlog(job.VideoLane, "acme", job.Backlog{})
	}},
	{"counts the lane's pending and processing jobs, and the account's jobs on it and on all lanes", func(s *suite) {
		s.accept()
		s.acceptFor(job.ImageLane, "acme")
		s.acceptFor(job.VideoLane, "zoo")
		processing := s.accept()
		s.start(processing.ID, "n1", s.at(1))
		s.backlog(job.VideoLane, "acme", job.Backlog{Jobs: 3, AccountJobs: 2, AccountOpen: 3})
		s.backlog(job.VideoLane, "zoo", job.Backlog{Jobs: 3, AccountJobs: 1, AccountOpen: 1})
		s.backlog(job.VideoLane, "new", job.Backlog{Jobs: 3})
		s.backlog(job.ImageLane, "acme", job.Backlog{Jobs: 1, AccountJobs: 1, AccountOpen: 3})
	}},
	{"does not count completed or failed jobs", func(s *suite) {
		failed, expired := s.accept(), s.accept()
		conformance.OK(s, s.Runs.Fail(s.ctx, failed.ID, "", broken, s.at(1)))
		_, err := s.Store.Expire(s.ctx, expired.ID, expired.Deadline)
		conformance.OK(s, err)
		s.backlog(job.VideoLane, "acme", job.Backlog{})
	}},
	{"returns the mean run time of the lane's completed jobs", func(s *suite) {
		for range 4 {
			j := s.accept()
			s.start(j.ID, "n1", s.at(10))
			conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(14)))
		}
		s.backlog(job.VideoLane, "acme", job.Backlog{RunTime: 4 * time.Second})
		s.backlog(job.ImageLane, "acme", job.Backlog{})
	}},
	{"reports how many other accounts completed jobs, and uses five runs of each account", func(s *suite) {
		complete := func(account string, count int, seconds float64) {
			for range count {
				j := s.acceptFor(job.VideoLane, account)
				s.start(j.ID, "n1", s.at(10))
				conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(10+seconds)))
			}
		}
		complete("acme", 1, 4)
		complete("zoo", 30, 40)
		s.backlog(job.VideoLane, "zoo", job.Backlog{RunTime: 34 * time.Second, Others: 1})
		s.backlog(job.VideoLane, "acme", job.Backlog{RunTime: 34 * time.Second, Others: 1})
		s.backlog(job.ImageLane, "acme", job.Backlog{})
		s.same("runs", len(s.queue(job.VideoLane).Runs), 6)
	}},
	{"does not count accounts whose jobs completed too long ago", func(s *suite) {
		j := s.acceptFor(job.VideoLane, "zoo")
		began := s.now.Add(-job.OthersFor - time.Minute)
		s.start(j.ID, "n1", began)
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, began.Add(4*time.Second)))
		s.backlog(job.VideoLane, "acme", job.Backlog{RunTime: 4 * time.Second})
	}},
}

func (s *suite) backlog(lane job.Lane, account string, want job.Backlog) {
	s.Helper()
	got, err := s.Store.Backlog(s.ctx, lane, account)
	conformance.OK(s, err)
	s.same("backlog of "+account+" on "+string(lane), got, want)
}
