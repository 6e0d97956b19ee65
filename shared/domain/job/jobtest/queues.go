package jobtest

import (
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

var queueTests = []test{
	{"of an idle lane are empty", func(s *suite) {
		queue := s.queue(job.VideoLane)
		if queue.Waiting != 0 || queue.Running != 0 || len(queue.Runs) != 0 || len(queue.ByAccount) != 0 {
			s.Errorf("the queue is %+v", queue)
		}
	}},
	{"count the lane's waiting jobs, by account if known", func(s *suite) {
		s.accept()
		s.accept()
		s.acceptFor(job.VideoLane, "zoo")
		s.acceptFor(job.ImageLane, "zoo")
		queue := s.queue(job.VideoLane)
		if queue.Waiting != 3 || queue.Running != 0 {
			s.Errorf("the queue is %+v", queue)
		}
		if queue.ByAccount != nil {
			s.same("accounts", queue.ByAccount, map[string]int{"acme": 2, "zoo": 1})
		}
	}},
	{"count the account's jobs before and after a job", func(s *suite) {
		first, second, third := s.accept(), s.accept(), s.accept()
		s.acceptFor(job.VideoLane, "zoo")
		s.acceptFor(job.ImageLane, "acme")
		for i, j := range []job.Job{first, second, third} {
			own, err := s.Queues.Own(s.ctx, j)
			conformance.OK(s, err)
			s.same(j.ID, own, job.Own{Before: i, After: 2 - i})
		}
		conformance.OK(s, s.Store.Fail(s.ctx, first.ID, "", broken, s.at(1)))
		own, err := s.Queues.Own(s.ctx, third)
		conformance.OK(s, err)
		s.same("after the end of the first", own, job.Own{Before: 1})
	}},
	{"return the run times of completed jobs with their models", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(10))
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(14)))
		s.same("runs", s.queue(job.VideoLane).Runs, []job.RunTime{
			{Model: j.Model, Took: 4 * time.Second, Account: j.Account, Ended: s.at(14)},
		})
		s.same("runs of the other lane", len(s.queue(job.ImageLane).Runs), 0)
	}},
}

func (s *suite) queue(lane job.Lane) job.Queue {
	s.Helper()
	queue, err := s.Queues.Queue(s.ctx, lane)
	conformance.OK(s, err)
	return queue
}
