// Package webhooktest specifies the behavior of [webhook.Store] and [webhook.Queue].
package webhooktest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/testkit/conformance"
)

// All stores of a Harness use the same records.
type Harness struct {
	Store   webhook.Store
	Jobs    job.Store
	Budgets budget.Store
	// Queue is nil if the platform delivers scheduled attempts. Its tests are then skipped.
	Queue webhook.Queue
}

// Run calls `open` once per test. That function must register a cleanup that closes its stores.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	conformance.Run(t, func(t *testing.T, group string, test test) {
		h := open(t)
		if group == "Queue" && h.Queue == nil {
			t.Skip("the platform delivers scheduled attempts")
		}
		test.run(&suite{T: t, Harness: h, ctx: conformance.Context(t)})
	}, conformance.About("Store", storeTests), conformance.About("Queue", queueTests))
}

type test struct {
	name string
	run  func(s *suite)
}

func (t test) Says() string { return t.name }

type suite struct {
	*testing.T
	Harness
	ctx context.Context
}

// Use the real time, because a platform may delete old records.
var start = time.Now().UTC().Truncate(time.Millisecond)

func after(d time.Duration) time.Time { return start.Add(d) }

func (s *suite) accept(account, number, url string) job.Job {
	s.Helper()
	j := job.Job{
		ID: "job_" + account + number, Account: account, Key: "key", Model: "gen-2.5", Lane: job.VideoLane,
		Status:  job.Pending,
		Webhook: url, CreatedAt: start, Deadline: after(job.MaxAge),
	}
	conformance.OK(s, s.Jobs.Accept(s.ctx, j, 0))
	return j
}

// ended returns a job that has a webhook and ended at the given time.
func (s *suite) ended(account, number string, at time.Time) job.Job {
	s.Helper()
	j := s.accept(account, number, "https://example.com/hook")
	conformance.OK(s, s.Jobs.Fail(s.ctx, j.ID, "", job.TimeoutFailure(), at))
	return j
}

func endOf(j job.Job) webhook.Event {
	return webhook.Event{ID: j.ID, Account: j.Account, URL: j.Webhook, FirstBy: j.Deadline}
}

func (s *suite) warned(account string, at time.Time) webhook.Event {
	s.Helper()
	b := budget.Budget{
		ID: budget.ID{Account: account, Period: budget.Day, Unit: budget.Jobs}, Limit: 10, WarnURL: "https://example.com/budget",
	}
	conformance.OK(s, s.Budgets.Set(s.ctx, audit.Operator(start), b))
	_, err := s.Budgets.Take(s.ctx, budget.Allocation{Counter: b.Counter(at), ID: "lease-" + account}, 10, 8, 8)
	conformance.OK(s, err)
	noted, err := s.Budgets.Warn(s.ctx, b.Counter(at), 0, at)
	conformance.OK(s, err)
	return webhook.Event{ID: noted.Warning.EventID(), Account: account, URL: b.WarnURL, FirstBy: at}
}

func (s *suite) attempted(j job.Job, want ...webhook.Attempt) {
	s.Helper()
	s.attemptedOf(j.ID, want...)
}

func (s *suite) attemptedOf(id string, want ...webhook.Attempt) {
	s.Helper()
	got, err := s.Store.Attempts(s.ctx, id)
	conformance.OK(s, err)
	conformance.SameList(s, "the list of attempts", got, want)
}

func failed(number int) webhook.Attempt {
	return webhook.Attempt{
		Number: number, At: after(time.Duration(number) * time.Minute), Duration: 1234 * time.Millisecond, Status: 503,
		Error: "The receiver responded with status 503.", Next: after(time.Duration(number+1) * time.Minute),
	}
}

var storeTests = []test{
	{"the attempts of a job are deleted with the job", func(s *suite) {
		j := s.ended("acme", "1", after(time.Second))
		conformance.OK(s, s.Store.Record(s.ctx, endOf(j), failed(1)))
		conformance.OK(s, s.Jobs.Forget(s.ctx, j.ID))
		s.attempted(j)
	}},
	{"a job has no attempts before its first", func(s *suite) {
		s.attempted(s.accept("acme", "1", "https://example.com/hook"))
		s.attempted(s.ended("acme", "2", after(time.Second)))
		s.attempted(job.Job{ID: "job_unknown"})
	}},
	{"attempts are stored unchanged and in order", func(s *suite) {
		j, other := s.ended("acme", "1", after(time.Second)), s.ended("acme", "2", after(time.Second))
		silent := webhook.Attempt{
			Number: 2, At: after(time.Hour), Duration: 10 * time.Second, Error: "The receiver took too long.",
			Next: after(2 * time.Hour),
		}
		last := webhook.Attempt{Number: 3, At: after(2 * time.Hour), Status: 204}
		for _, a := range []webhook.Attempt{failed(1), silent, last} {
			conformance.OK(s, s.Store.Record(s.ctx, endOf(j), a))
		}
		s.attempted(j, failed(1), silent, last)
		s.attempted(other)
	}},
	{"recording an attempt again changes nothing", func(s *suite) {
		j := s.ended("acme", "1", after(time.Second))
		for range 2 {
			conformance.OK(s, s.Store.Record(s.ctx, endOf(j), failed(1)))
		}
		conformance.OK(s, s.Store.Record(s.ctx, endOf(j), failed(2)))
		conformance.OK(s, s.Store.Record(s.ctx, endOf(j), failed(1)))
		s.attempted(j, failed(1), failed(2))
	}},
	{"an attempt with a wrong number is a conflict", func(s *suite) {
		j := s.ended("acme", "1", after(time.Second))
		conformance.Fails(s, s.Store.Record(s.ctx, endOf(j), failed(2)), fault.Conflict)
		conformance.OK(s, s.Store.Record(s.ctx, endOf(j), failed(1)))
		other := failed(1)
		other.At = after(time.Hour)
		conformance.Fails(s, s.Store.Record(s.ctx, endOf(j), other), fault.Conflict)
		conformance.Fails(s, s.Store.Record(s.ctx, endOf(j), failed(3)), fault.Conflict)
		s.attempted(j, failed(1))
	}},
	{"of several concurrent attempts one is recorded", func(s *suite) {
		j := s.ended("acme", "1", after(time.Second))
		errs := conformance.Race(4, func(racer int) error {
			a := failed(1)
			a.At = a.At.Add(time.Duration(racer) * time.Millisecond)
			return s.Store.Record(s.ctx, endOf(j), a)
		})
		won := conformance.Winners(s, errs, fault.Conflict)
		made, err := s.Store.Attempts(s.ctx, j.ID)
		conformance.OK(s, err)
		if len(won) != 1 || len(made) != 1 {
			s.Fatalf("%v won, recorded are %+v", won, made)
		}
	}},
	{"attempts for a warning are stored like those for a job", func(s *suite) {
		e := s.warned("acme", after(time.Second))
		s.attemptedOf(e.ID)
		conformance.Fails(s, s.Store.Record(s.ctx, e, failed(2)), fault.Conflict)
		for range 2 {
			conformance.OK(s, s.Store.Record(s.ctx, e, failed(1)))
		}
		s.attemptedOf(e.ID, failed(1))
	}},
	{"recording attempts does not change the job", func(s *suite) {
		j := s.ended("acme", "1", after(time.Second))
		before, err := s.Jobs.Get(s.ctx, j.ID)
		conformance.OK(s, err)
		conformance.OK(s, s.Store.Record(s.ctx, endOf(j), failed(1)))
		now, err := s.Jobs.Get(s.ctx, j.ID)
		conformance.OK(s, err)
		conformance.Same(s, "the job", now, before)
		conformance.Same(s, "its webhook", now.Webhook, "https://example.com/hook")
	}},
}

func (s *suite) due(now time.Time, ofAccount, limit int, want ...webhook.ScheduledAttempt) {
	s.Helper()
	got, err := s.Queue.Due(s.ctx, now, ofAccount, limit)
	conformance.OK(s, err)
	conformance.SameList(s, "the list of due attempts", got, want)
}

var queueTests = []test{
	{"the first attempt is due when a job with a webhook ends", func(s *suite) {
		open := s.accept("acme", "1", "https://example.com/hook")
		silent := s.accept("acme", "2", "")
		conformance.OK(s, s.Jobs.Fail(s.ctx, silent.ID, "", job.TimeoutFailure(), after(time.Second)))
		s.due(after(time.Hour), 10, 10)
		conformance.OK(s, s.Jobs.Fail(s.ctx, open.ID, "", job.TimeoutFailure(), after(time.Second)))
		s.due(after(time.Second-time.Millisecond), 10, 10)
		s.due(after(time.Second), 10, 10, webhook.First(open.ID, "acme", after(time.Second)))
	}},
	{"no attempt is due for a job whose request leaves out its status", func(s *suite) {
		for events, due := range map[string]int{"completed": 0, "failed": 1, "completed,failed": 1} {
			j := job.Job{
				ID: "job_" + events, Account: "acme", Key: "key", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
				Request: job.Request{Options: map[string]any{job.WebhookEvents: events}},
				Webhook: "https://example.com/hook", CreatedAt: start, Deadline: after(job.MaxAge),
			}
			conformance.OK(s, s.Jobs.Accept(s.ctx, j, 0))
			conformance.OK(s, s.Jobs.Fail(s.ctx, j.ID, "", job.TimeoutFailure(), start))
			s.due(start, 10, 10, []webhook.ScheduledAttempt{webhook.First(j.ID, "acme", start)}[:due]...)
			conformance.OK(s, s.Jobs.Forget(s.ctx, j.ID))
		}
	}},
	{"the first attempt for a warning is due when the warning is recorded", func(s *suite) {
		e := s.warned("acme", after(time.Second))
		s.due(after(time.Second-time.Millisecond), 10, 10)
		s.due(after(time.Second), 10, 10, webhook.First(e.ID, "acme", after(time.Second)))
		conformance.OK(s, s.Store.Record(s.ctx, e, failed(1)))
		s.due(failed(1).Next, 10, 10, webhook.ScheduledAttempt{Event: e.ID, Account: "acme", Number: 2, At: failed(1).Next})
	}},
	{"the first attempt is due when a job's deadline ends it", func(s *suite) {
		j := s.accept("acme", "1", "https://example.com/hook")
		_, err := s.Jobs.Expire(s.ctx, j.ID, after(time.Hour))
		conformance.OK(s, err)
		s.due(after(time.Hour), 10, 10, webhook.First(j.ID, "acme", j.Deadline))
	}},
	{"an attempt schedules the next one, except the last attempt", func(s *suite) {
		j := s.ended("acme", "1", after(time.Second))
		conformance.OK(s, s.Store.Record(s.ctx, endOf(j), failed(1)))
		s.due(failed(1).Next.Add(-time.Millisecond), 10, 10)
		s.due(failed(1).Next, 10, 10, webhook.ScheduledAttempt{Event: j.ID, Account: "acme", Number: 2, At: failed(1).Next})
		conformance.OK(s, s.Store.Record(s.ctx, endOf(j), webhook.Attempt{Number: 2, At: after(time.Hour), Status: 200}))
		s.due(after(24*time.Hour), 10, 10)
	}},
	{"accounts take turns", func(s *suite) {
		var turns []webhook.ScheduledAttempt
		for i := range 5 {
			at := after(time.Duration(i) * time.Second)
			turns = append(turns, webhook.First(s.ended("many", fmt.Sprint(i), at).ID, "many", at))
		}
		few := webhook.First(s.ended("few", "1", after(time.Minute)).ID, "few", after(time.Minute))
		s.due(after(time.Hour), 2, 10, turns[0], few, turns[1])
		s.due(after(time.Hour), 10, 3, turns[0], few, turns[1])
		s.due(after(time.Hour), 10, 10, turns[0], few, turns[1], turns[2], turns[3], turns[4])
	}},
	{"a deleted job has no due attempts", func(s *suite) {
		j := s.ended("acme", "1", after(time.Second))
		conformance.OK(s, s.Store.Record(s.ctx, endOf(j), failed(1)))
		conformance.OK(s, s.Jobs.Forget(s.ctx, j.ID))
		s.attempted(j)
		s.due(after(time.Hour), 10, 10)
		conformance.Fails(s, s.Store.Record(s.ctx, endOf(j), failed(2)), fault.NotFound)
	}},
}
