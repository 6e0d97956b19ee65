package dynamo_test

import (
	"crypto/rand"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
)

// Admission makes no extra call: the fleet's record is read with the queue and cached for a few seconds.
func TestAdmissionUsesFleetState(t *testing.T) {
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	client := dynamo.NewClient(proxy.Config())
	count := counted{dynamo.NewClient(cloud.Config()), cloud.MakeTable(t, "jobs")}
	now := time.Now().UTC().Truncate(time.Millisecond)
	clock := func() time.Time { return now }
	runs := dynamo.NewRuns(client, count.table).CountIn(dynamo.NewUsage(client, cloud.MakeTable(t, "usage")))
	jobs := dynamo.NewJobs(runs, &handedOver{}, count, clock)
	service := job.NewService(job.Config{
		Store: jobs, Now: clock, Random: rand.Reader, Workers: map[job.Lane]int{job.VideoLane: 8},
	})
	ctx := t.Context()
	fleetStore, workers := dynamo.NewFleetStore(client, count.table), dynamo.NewWorkers(client, count.table, clock)
	admitted := func(what string, want bool) {
		t.Helper()
		err := service.CheckCapacity(ctx, job.VideoLane, "acme", 0, 0)
		if err == nil != want || err != nil && !fault.Is(err, fault.Limited) {
			t.Errorf("%s: got %v, want admitted=%t", what, err, want)
		}
	}
	saw := func(f job.Fleet) {
		t.Helper()
		if err := fleetStore.Saw(ctx, time.Time{}, f); err != nil {
			t.Fatal(err)
		}
		now = now.Add(5 * time.Second)
	}
	admitted("no check was made", true)
	saw(job.Fleet{SeenAt: now, Most: 8})
	admitted("asleep", true)
	stuck := job.Fleet{SeenAt: now, Wanted: 2, Most: 8, WantedSince: now.Add(-time.Hour), ShortSince: now.Add(-time.Hour)}
	if err := fleetStore.Saw(ctx, time.Time{}, stuck); err != nil {
		t.Fatal(err)
	}
	admitted("within seconds of the last check", true)
	now = now.Add(5 * time.Second)
	admitted("no worker starts", false)
	proxy.Calls()
	for range 3 {
		admitted("no worker starts", false)
	}
	if calls := awstest.CallList(proxy.Calls()); calls != "3 BatchGetItem" {
		t.Errorf("three submissions within seconds made the calls %s", calls)
	}
	if err := workers.Beat(ctx, job.VideoLane); err != nil {
		t.Fatal(err)
	}
	now = now.Add(5 * time.Second)
	admitted("a worker has reported", true)
	now = now.Add(dynamo.WarmFor)
	admitted("the worker has not reported for a long time", false)
	now = now.Add(20 * time.Minute)
	admitted("no check was made for a long time", true)

	// This process immediately knows the duration of a run that it completed.
	j := newJob("job_1")
	if err := jobs.Accept(ctx, j, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Start(ctx, j.ID, "n1", j.CreatedAt); err != nil {
		t.Fatal(err)
	}
	if err := jobs.Complete(ctx, j.ID, "n1", job.Result{Blob: "a"}, j.CreatedAt.Add(3*time.Second)); err != nil {
		t.Fatal(err)
	}
	if known, err := jobs.RunTimes(ctx, job.VideoLane); err != nil || len(known) != 1 || known[0].Took != 3*time.Second ||
		known[0].Model != "gen-2.5" {
		t.Errorf("the run times are %+v, %v", known, err)
	}
}
