package dynamo_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/conformance"
)

// spreadJobs are jobs with budgets whose counters have parts.
type spreadJobs struct {
	*testing.T
	jobs    *dynamo.Jobs
	budgets *dynamo.Budgets
	pass    func(time.Duration)
}

func newSpreadJobs(t *testing.T) *spreadJobs {
	cloud := local.Cloud(t)
	clock, passed := &storeClock{now: time.Now()}, &machine{}
	config := cloud.Config()
	config.HTTPClient = &http.Client{Transport: clock}
	records, table := dynamo.NewClient(config), cloud.MakeTable(t, "usage")
	budgets := dynamo.NewBudgets(records, table, passed, rand.Text).Spread()
	runs := dynamo.NewRuns(records, cloud.MakeTable(t, "jobs")).CountIn(dynamo.NewUsage(records, table)).HoldIn(budgets)
	return &spreadJobs{
		T: t, jobs: dynamo.NewJobs(runs, &handedOver{}, nil, time.Now), budgets: budgets,
		pass: func(d time.Duration) { clock.pass(d); passed.now.Add(int64(d)) },
	}
}

func (s *spreadJobs) used(want int64) {
	s.Helper()
	got, err := s.budgets.Used(s.Context(), []budget.Counter{daily})
	conformance.OK(s, err)
	conformance.Same(s, "what is used", got, []int64{want})
}

// accept accepts jobs at once, and returns those that were.
func (s *spreadJobs) accept(n int, claim budget.Claim) (accepted []job.Job) {
	s.Helper()
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = newJob("job_" + rand.Text())
		jobs[i].Request.Price = &catalog.MediaPrice{Per: catalog.PerSecond, Millionths: 1, Currency: "EUR"}
	}
	errs := conformance.Race(n, func(i int) error { return s.jobs.Accept(s.Context(), jobs[i], 0, claim) })
	for _, i := range conformance.Winners(s, errs, fault.Exhausted) {
		j, err := s.jobs.Get(s.Context(), jobs[i].ID)
		conformance.OK(s, err)
		accepted = append(accepted, j)
	}
	return accepted
}

// Jobs that take from the parts of a counter use up a budget to its end and never more, and
// what they do not use is free for all.
func TestPartsOfACounterAreItsLimit(t *testing.T) {
	s, ctx := newSpreadJobs(t), t.Context()
	const limit, amount = 700, 100
	claim := budget.Claim{Counter: daily, Limit: limit, Amount: amount}
	all := s.accept(12, claim)
	if len(all) != limit/amount {
		t.Fatalf("%d jobs were accepted, want %d", len(all), limit/amount)
	}
	s.used(limit)
	if !slices.ContainsFunc(all, func(j job.Job) bool { return strings.Contains(string(j.Holds[0].Window), "#") }) {
		t.Error("no job has taken from a part")
	}
	lease := budget.Lease{Counter: daily, ID: "lease-1"}
	taken, err := s.budgets.Take(ctx, lease, limit, 1, 1)
	conformance.OK(t, err)
	conformance.Same(t, "what is taken of nothing", taken, budget.Taken{})

	_, err = s.jobs.Start(ctx, all[0].ID, "n1", time.Now())
	conformance.OK(t, err)
	clip := job.Result{Blob: "a", Duration: 30 * time.Millisecond} // 30 billionths
	conformance.OK(t, s.jobs.Complete(ctx, all[0].ID, "n1", clip, time.Now()))
	s.used(limit - amount + 30)
	for _, j := range all[1:4] {
		conformance.OK(t, s.jobs.Fail(ctx, j.ID, "", job.CancelledFailure(), time.Now()))
	}
	s.used(330)
	if more := len(s.accept(6, claim)); more != 3 {
		t.Fatalf("%d more jobs were accepted, want 3", more)
	}
	taken, err = s.budgets.Take(ctx, lease, limit, 1, 1000)
	conformance.OK(t, err)
	conformance.Same(t, "what a process takes of the rest", taken, budget.Taken{Share: 70})
	s.used(limit)

	// What nobody settles returns by itself, and processes find it in the parts.
	conformance.OK(t, s.budgets.End(ctx, budget.Lease{Counter: daily, ID: "lease-1", Share: 70, Spent: 70}))
	s.pass(job.MaxAge + 10*time.Minute)
	taken, err = s.budgets.Take(ctx, budget.Lease{Counter: daily, ID: "lease-2"}, limit, 600, 600)
	conformance.OK(t, err)
	conformance.Same(t, "what a process takes when all jobs are over", taken, budget.Taken{Share: 600})
	s.used(700)
}

// What is used is the same while amounts are moved between a counter and its parts, and a
// warning is of what is used.
func TestPartsOfACounterAreNotUsed(t *testing.T) {
	s, ctx := newSpreadJobs(t), t.Context()
	b := budget.Budget{ID: daily.ID, Limit: 100}
	conformance.OK(t, s.budgets.Set(ctx, audit.Operator(time.Now()), b))
	claim := budget.Claim{Counter: daily, Limit: b.Limit, Amount: 1}
	accepted, most := atomic.Int64{}, 0
	for range 8 {
		most += 12
		for _, err := range conformance.Race(13, func(i int) error {
			if i < 12 {
				err := s.jobs.Accept(context.WithoutCancel(ctx), newJob("job_"+rand.Text()), 0, claim)
				accepted.Add(1)
				return err
			}
			before := accepted.Load()
			used, err := s.budgets.Used(ctx, []budget.Counter{daily})
			if err == nil && (used[0] < before || used[0] > int64(most)) {
				err = fmt.Errorf("%d are used, want %d to %d", used[0], before, most)
			}
			return err
		}) {
			conformance.OK(t, err)
		}
		s.used(int64(most))
		noted, err := s.budgets.Warn(ctx, daily, 0, time.Now())
		conformance.OK(t, err)
		if want := most >= 80; (noted.Percent == 80) != want || noted.Percent == 100 {
			t.Fatalf("a warning of %d %% is noted at %d", noted.Percent, most)
		}
	}
}

// A limit that is lowered below what is used lets no more jobs begin, though the parts have
// something left that was moved there before, and what is left is of use again once there
// is room. It has fewer parts then, and what is in the others is found all the same.
func TestPartsOfACounterWhoseLimitIsLowered(t *testing.T) {
	s := newSpreadJobs(t)
	claim := budget.Claim{Counter: daily, Limit: 1000, Amount: 1}
	left := func(parts ...int) (all int64) {
		for _, part := range parts {
			c := daily
			c.Window += budget.Window(fmt.Sprintf("#%d", part))
			used, err := s.budgets.Used(t.Context(), []budget.Counter{c})
			conformance.OK(t, err)
			all -= used[0]
		}
		return all
	}
	var all []job.Job
	for len(all) < 8 || left(0, 1, 2) == 0 || left(3, 4) == 0 {
		all = append(all, s.accept(1, claim)...)
	}
	used := int64(len(all))
	for _, limit := range []int64{used - 3, used} {
		claim.Limit = limit
		if more := len(s.accept(6, claim)); more != 0 {
			t.Errorf("%d jobs were accepted at a limit of %d while %d was used", more, limit, used)
		}
		s.used(used)
	}
	claim.Limit = used + 7
	conformance.Same(t, "jobs that were accepted within a higher limit", len(s.accept(12, claim)), 7)
	s.used(used + 7)
	for _, j := range all {
		conformance.OK(t, s.jobs.Fail(t.Context(), j.ID, "", job.CancelledFailure(), time.Now()))
	}
	claim.Limit = 10
	conformance.Same(t, "jobs that were accepted when others had ended", len(s.accept(6, claim)), 3)
	s.used(10)
}
