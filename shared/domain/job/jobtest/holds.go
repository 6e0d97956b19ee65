package jobtest

import (
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

// These windows are far in the future, so no store has deleted them.
var (
	spending = budget.Counter{
		ID: budget.ID{Account: "acme", Period: budget.Month, Unit: budget.Cost}, Window: "2126-02",
	}
	edits = budget.Counter{
		ID:     budget.ID{Account: "acme", Key: "key_0123456789ab", Period: budget.Day, Unit: budget.Jobs},
		Window: "2126-02-03",
	}
)

// costHeld is the amount that each job in these tests reserves, which is the price of 6 seconds.
const costHeld = 300_000_000

// claims returns a claim on a cost budget that suffices for the given number of jobs, and a claim on a budget of 1000
// jobs.
func claims(places int64) []budget.Claim {
	return []budget.Claim{
		{Counter: edits, Limit: 1000, Amount: 1}, {Counter: spending, Limit: places * costHeld, Amount: costHeld},
	}
}

func (s *suite) holding() job.Job {
	j := s.new(job.VideoLane, "acme")
	j.Request.Price = &catalog.MediaPrice{Per: catalog.PerSecond, Millionths: 50_000, Currency: "EUR"}
	j.Request.Length = 6 * time.Second
	return j
}

// held accepts a job with claims(places) and starts its run "n1".
func (s *suite) held(places int64) job.Job {
	s.Helper()
	j := s.holding()
	conformance.OK(s, s.Store.Accept(s.ctx, j, 0, claims(places)...))
	return s.start(j.ID, "n1", s.at(1))
}

func (s *suite) used(jobs, cost int64) {
	s.Helper()
	got, err := s.Budgets.Used(s.ctx, []budget.Counter{edits, spending})
	conformance.OK(s, err)
	s.same("used", got, []int64{jobs, cost})
}

var holdTests = []test{
	{"are reserved once when a job is accepted, and are in its record", func(s *suite) {
		j := s.holding()
		for range 2 {
			conformance.OK(s, s.Store.Accept(s.ctx, j, 0, claims(5)...))
			s.used(1, costHeld)
		}
		j.Holds = []budget.Hold{{Counter: edits, Amount: 1}, {Counter: spending, Amount: costHeld}}
		s.unchanged(j)
	}},
	{"are all reserved, or none of them", func(s *suite) {
		s.held(2)
		refused := s.holding()
		conformance.Fails(s, s.Store.Accept(s.ctx, refused, 0, claims(1)...), fault.Exhausted)
		_, err := s.Store.Get(s.ctx, refused.ID)
		conformance.Fails(s, err, fault.NotFound)
		s.used(1, costHeld)
		conformance.Fails(s, s.Store.Accept(s.ctx, s.holding(), 1, claims(2)...), fault.Limited)
		s.used(1, costHeld)
		conformance.OK(s, s.Store.Accept(s.ctx, s.holding(), 2, claims(2)...))
		s.used(2, 2*costHeld)
	}},
	{"are settled once with the cost of a completed job", func(s *suite) {
		j := s.held(5)
		for range 3 {
			conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", clip, s.at(2)))
			s.used(1, costOfClip)
			s.bill(1, 1, costOfClip)
		}
		conformance.OK(s, s.Store.Forget(s.ctx, j.ID))
		s.used(1, costOfClip)
	}},
	{"limit the cost of a job", func(s *suite) {
		j, longer := s.held(5), clip
		longer.Duration = 7 * time.Second
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n1", longer, s.at(2)))
		s.used(1, costHeld)
		s.bill(1, 1, costHeld)
	}},
	{"return to the budget when a job does not complete", func(s *suite) {
		overdue, cancelled, failed := s.held(9), s.held(9), s.held(9)
		waiting := s.holding()
		conformance.OK(s, s.Store.Accept(s.ctx, waiting, 0, claims(9)...))
		s.used(4, 4*costHeld)
		for i, end := range []func() error{
			func() error {
				_, err := s.Store.Expire(s.ctx, overdue.ID, overdue.Deadline)
				return err
			},
			func() error { return s.Runs.Fail(s.ctx, cancelled.ID, "", job.CancelledFailure(), s.at(2)) },
			func() error { return s.Runs.Fail(s.ctx, failed.ID, "n1", broken, s.at(2)) },
			func() error { return s.Runs.Fail(s.ctx, waiting.ID, "", job.CancelledFailure(), s.at(2)) },
		} {
			for range 2 {
				conformance.OK(s, end())
				left := int64(3 - i)
				s.used(left, left*costHeld)
			}
		}
	}},
	{"remain while a job is open", func(s *suite) {
		j := s.held(5)
		conformance.OK(s, s.Runs.Release(s.ctx, j.ID, "n1"))
		conformance.OK(s, s.Store.Forget(s.ctx, j.ID))
		conformance.Fails(s, s.Runs.Complete(s.ctx, j.ID, "n1", clip, s.at(2)), fault.Conflict)
		s.start(j.ID, "n2", s.at(2))
		s.used(1, costHeld)
		conformance.OK(s, s.Runs.Complete(s.ctx, j.ID, "n2", clip, s.at(3)))
		s.used(1, costOfClip)
	}},
	{"never exceed a budget that many jobs claim", func(s *suite) {
		const places = 7
		jobs := make([]job.Job, racers)
		for i := range jobs {
			jobs[i] = s.holding()
		}
		won := conformance.Winners(s, conformance.Race(racers, func(i int) error {
			return s.Store.Accept(s.ctx, jobs[i], 0, claims(places)...)
		}), fault.Exhausted)
		s.same("jobs accepted", len(won), places)
		s.used(places, places*costHeld)
		conformance.Race(len(won), func(i int) error {
			return s.Runs.Fail(s.ctx, jobs[won[i]].ID, "", job.CancelledFailure(), s.at(2))
		})
		s.used(0, 0)
	}},
	{"are settled once if several goroutines end a job", func(s *suite) {
		j := s.held(5)
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
			s.used(1, costOfClip)
		} else {
			s.used(0, 0)
		}
	}},
}
