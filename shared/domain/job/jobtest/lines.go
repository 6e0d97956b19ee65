package jobtest

import (
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

var lineTests = []test{
	{"of an idle lane are empty", func(s *suite) {
		line := s.line(job.VideoLane)
		if line.Waiting != 0 || line.Running != 0 || len(line.Runs) != 0 || len(line.ByAccount) != 0 {
			s.Errorf("the line is %+v", line)
		}
	}},
	{"count the lane's waiting jobs, by account where that is known", func(s *suite) {
		s.accept()
		s.accept()
		s.acceptFor(job.VideoLane, "zoo")
		s.acceptFor(job.ImageLane, "zoo")
		line := s.line(job.VideoLane)
		if line.Waiting != 3 || line.Running != 0 {
			s.Errorf("the line is %+v", line)
		}
		if line.ByAccount != nil {
			s.same("accounts", line.ByAccount, map[string]int{"acme": 2, "zoo": 1})
		}
	}},
	{"tell what of its account is before a job and after it", func(s *suite) {
		first, second, third := s.accept(), s.accept(), s.accept()
		s.acceptFor(job.VideoLane, "zoo")
		s.acceptFor(job.ImageLane, "acme")
		for i, j := range []job.Job{first, second, third} {
			own, err := s.Lines.Own(s.ctx, j)
			conformance.OK(s, err)
			s.same(j.ID, own, job.Own{Before: i, After: 2 - i})
		}
		conformance.OK(s, s.Store.Fail(s.ctx, first.ID, "", broken, s.at(1)))
		own, err := s.Lines.Own(s.ctx, third)
		conformance.OK(s, err)
		s.same("after the end of the first", own, job.Own{Before: 1})
	}},
	{"tell the run times of completed jobs with their models", func(s *suite) {
		j := s.accept()
		s.start(j.ID, "n1", s.at(10))
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", result, s.at(14)))
		s.same("runs", s.line(job.VideoLane).Runs, []job.RunTime{{Model: j.Model, Took: 4 * time.Second}})
		s.same("runs of the other lane", len(s.line(job.ImageLane).Runs), 0)
	}},
}

func (s *suite) line(lane job.Lane) job.Line {
	s.Helper()
	line, err := s.Lines.Line(s.ctx, lane)
	conformance.OK(s, err)
	return line
}
