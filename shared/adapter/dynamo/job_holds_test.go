package dynamo_test

import (
	"crypto/rand"
	"net/http"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/conformance"
)

// A job that completes after some of its holds expired is billed, and settled with the remaining holds.
func TestUnsettledHoldsExpire(t *testing.T) {
	cloud, ctx := local.Cloud(t), t.Context()
	clock, passed := &storeClock{now: time.Now()}, &machine{}
	config := cloud.Config()
	config.HTTPClient = &http.Client{Transport: clock}
	records, table := dynamo.NewClient(config), cloud.MakeTable(t, "usage")
	budgets, used := dynamo.NewBudgets(records, table, passed, rand.Text), dynamo.NewUsage(records, table)
	runs := dynamo.NewRuns(records, cloud.MakeTable(t, "jobs")).CountIn(used).HoldIn(budgets)
	jobs := dynamo.NewJobs(runs, &handedOver{}, nil, time.Now)
	want := func(n int64) {
		t.Helper()
		if got, err := budgets.Used(ctx, []budget.Counter{daily}); err != nil || got[0] != n {
			t.Errorf("%d are used (%v), want %d", got, err, n)
		}
	}
	claim := budget.Claim{Counter: daily, Limit: 100, Amount: 40}
	failed, late := newJob("job_failed"), newJob("job_late")
	late.Deadline = late.Deadline.Add(time.Hour) // by this clock, not by the store's clock
	for _, j := range []job.Job{failed, late} {
		conformance.OK(t, jobs.Accept(ctx, j, 0, claim))
		_, err := jobs.Start(ctx, j.ID, "n1", time.Now())
		conformance.OK(t, err)
	}
	// The state machine writes failures like this.
	conformance.OK(t, runs.WriteFailure(ctx, failed.ID, job.TimeoutFailure(), time.Now()))
	want(80)
	clock.pass(job.MaxAge + 4*time.Minute)
	passed.now.Add(int64(job.MaxAge + 4*time.Minute))
	want(80)
	clock.pass(2 * time.Minute)
	passed.now.Add(int64(2 * time.Minute))
	want(40)
	clock.pass(time.Hour)
	passed.now.Add(int64(time.Hour))
	want(0)
	conformance.OK(t, jobs.Complete(ctx, late.ID, "n1", job.Result{Blob: "a"}, time.Now()))
	totals, err := used.Totals(ctx, "acme", "2000-01-01", "9999-12-31", usage.All)
	conformance.OK(t, err)
	var sum usage.Counts
	for _, total := range totals {
		sum.Add(total.Counts)
	}
	conformance.Same(t, "the usage", sum, usage.Counts{Jobs: 2, JobsCompleted: 1})
	want(0)
}
