package sqsqueue_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

func TestCallsMatchDocumentation(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	h := newHomeBehind(t, cloud, proxy.Config())
	want := map[string]string{}
	for _, kind := range []string{"Jobs", "Machine", "Runs", "Queue", "Delivery", "Workers", "Estimates"} {
		for operation, calls := range awstest.Documented(t, kind) {
			want[kind+"."+operation] = calls
		}
	}
	ctx := t.Context()
	// counted runs an operation and compares its AWS calls with calls.tsv.
	counted := func(operation string, do func() error) {
		t.Helper()
		proxy.Calls()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		if calls := awstest.CallList(proxy.Calls()); calls != want[operation] {
			t.Errorf("%s makes the calls %s, but documented are %q", operation, calls, want[operation])
		}
		delete(want, operation)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	ids := make([]string, 10)
	for i := range ids {
		var err error
		ids[i], err = job.NewID(now, rand.Reader)
		conformance.OK(t, err)
	}
	newJob := func(id string) job.Job {
		return job.Job{
			ID: id, Account: "acme", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
			Request:   job.Request{Prompt: strings.Repeat("a", 1000)},
			CreatedAt: now, Deadline: now.Add(job.MaxAge),
		}
	}
	// Each call is a container's first, so the queue's record is not cached.
	backlog := func() error {
		jobs := dynamo.NewJobs(h.runs, nil, sqsqueue.NewLengths(proxy.Config(), h.urls), time.Now)
		_, err := jobs.Backlog(ctx, job.VideoLane, "acme")
		return err
	}
	accept := func(id string) func() error {
		return func() error { return h.jobs.Accept(ctx, newJob(id), 10) }
	}
	start := func(id, nonce string) func() error {
		return func() error {
			_, err := h.runs.Start(ctx, id, nonce, now)
			return err
		}
	}

	counted("Jobs.Backlog", backlog)
	counted("Jobs.Accept", accept(ids[1]))
	counted("Jobs.Accept, again", accept(ids[1]))
	counted("Jobs.Get", func() error {
		_, err := h.jobs.Get(ctx, ids[1])
		return err
	})
	d := h.receive(t, time.Minute) // needed so that the next call finds the message
	if err := d.Nack(ctx, 0); err != nil {
		t.Fatal(err)
	}
	counted("Queue.Receive", func() (err error) {
		d, err = h.queue.Receive(ctx, job.VideoLane, time.Minute)
		return err
	})
	counted("Runs.Start", start(ids[1], "n1"))
	counted("Runs.Progress", func() error { return h.runs.Progress(ctx, ids[1], "n1", 0.5) })
	counted("Delivery.Extend", func() error { return d.Extend(ctx, time.Minute) })
	counted("Runs.Release", func() error { return h.runs.Release(ctx, ids[1], "n1") })
	counted("Delivery.Nack", func() error { return d.Nack(ctx, 0) })
	d = h.receive(t, time.Minute)
	h.start(t, ids[1], "n2")
	counted("Delivery.Complete", func() error { return d.Complete(ctx, "n2", result) })
	ended(t, ctx, h.runs, ids[1])

	h.accept(t, ids[2])
	d = h.receive(t, time.Minute)
	h.start(t, ids[2], "n1")
	counted("Delivery.Fail", func() error { return d.Fail(ctx, "n1", job.TimeoutFailure()) })
	h.accept(t, ids[3])
	d = h.receive(t, time.Minute)
	counted("Delivery.Drop", func() error { return d.Drop(ctx) })
	counted("Jobs.Fail", func() error { return h.jobs.Fail(ctx, ids[3], "", job.WorkerLostFailure(), now) })
	h.accept(t, ids[4])
	counted("Machine.Stop",
		func() error { return stepfn.NewMachine(proxy.Config(), h.machine, h.urls).Stop(ctx, ids[3]) })
	list := func() error {
		_, _, err := h.jobs.List(ctx, "acme", job.Filter{}, "", 2, now)
		return err
	}
	counted("Jobs.List", list)
	counted("Jobs.Forget", func() error { return h.jobs.Forget(ctx, ids[1]) })
	counted("Jobs.Expire", func() error {
		_, err := h.jobs.Expire(ctx, ids[4], now.Add(2*job.MaxAge))
		return err
	})
	unreachable := dynamo.NewJobs(h.runs, stepfn.NewMachine(proxy.Config(), h.machine+"-gone", h.urls), nil, time.Now)
	counted("Jobs.Accept, not handed over", func() error {
		if err := unreachable.Accept(ctx, newJob(ids[5]), 10); err == nil {
			return fmt.Errorf("a job was queued with a machine that does not exist")
		}
		return nil
	})
	counted("Jobs.Accept, at the limit", func() error {
		conformance.OK(t, h.jobs.Accept(ctx, newJob(ids[6]), 10))
		proxy.Calls()
		conformance.Fails(t, h.jobs.Accept(ctx, newJob(ids[7]), 1), fault.Limited)
		return nil
	})
	// By this clock, the open job is past its deadline.
	later := dynamo.NewJobs(h.runs, stepfn.NewMachine(proxy.Config(), h.machine, h.urls), nil,
		func() time.Time { return now.Add(job.MaxAge) })
	counted("Jobs.Accept, with an ended job in the way", func() error { return later.Accept(ctx, newJob(ids[8]), 1) })
	workers := dynamo.NewWorkers(dynamo.NewClient(proxy.Config()), h.table, time.Now)
	counted("Workers.Beat", func() error { return workers.Beat(ctx, job.ImageLane) })
	estimates := dynamo.NewEstimates(dynamo.NewClient(proxy.Config()), h.table)
	counted("Estimates.PublishEstimates", func() error {
		return estimates.PublishEstimates(ctx, job.Estimates{{Points: []job.EstimatePoint{{}}}}, time.Now())
	})
	counted("Estimates.Estimates", func() error {
		_, err := estimates.Estimates(ctx)
		return err
	})
	counted("Workers.Warm", func() error {
		_, err := workers.Warm(ctx, job.ImageLane)
		return err
	})
	for operation := range want {
		t.Errorf("calls.tsv has %s, which the test does not count", operation)
	}
}
