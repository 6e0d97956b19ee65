package sqsqueue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
)

// Each operation makes the calls that calls.md of awstest lists, counted on the wire.
func TestCallsAreAsDocumented(t *testing.T) {
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
	// counted runs an operation and compares its calls with the page.
	counted := func(operation string, do func() error) {
		t.Helper()
		proxy.Calls()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		if calls := awstest.CallList(proxy.Calls()); calls != want[operation] {
			t.Errorf("%s: %s, and the page says %q", operation, calls, want[operation])
		}
		delete(want, operation)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	newJob := func(id string) job.Job {
		return job.Job{
			ID: id, Account: "acme", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
			Request:   job.Request{Prompt: strings.Repeat("a", 1000)},
			CreatedAt: now, Deadline: now.Add(job.MaxAge),
		}
	}
	// Each is the first of a container, which remembers nothing of the lane.
	backlog := func() error {
		jobs := dynamo.NewJobs(h.runs, nil, sqsqueue.NewLengths(proxy.Config(), h.urls), time.Now)
		_, err := jobs.Backlog(ctx, job.VideoLane, "acme", 10)
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
	counted("Jobs.Accept", accept("job_1"))
	counted("Jobs.Accept, again", accept("job_1"))
	counted("Jobs.Get", func() error {
		_, err := h.jobs.Get(ctx, "job_1")
		return err
	})
	d := h.receive(t, time.Minute) // so that the message is there for the next
	if err := d.Nack(ctx, 0); err != nil {
		t.Fatal(err)
	}
	// Another process, which has read no run times within the second before.
	other := func() *dynamo.Jobs {
		machine := stepfn.NewMachine(proxy.Config(), h.machine, h.urls)
		return dynamo.NewJobs(h.runs, machine, sqsqueue.NewLengths(proxy.Config(), h.urls), time.Now)
	}
	counted("Jobs.Backlog, with open jobs", func() error {
		_, err := other().Backlog(ctx, job.VideoLane, "acme", 10)
		return err
	})
	counted("Jobs.Backlog, of a high limit", func() error {
		_, err := other().Backlog(ctx, job.VideoLane, "acme", 3000)
		return err
	})
	counted("Queue.Receive", func() (err error) {
		d, err = h.queue.Receive(ctx, job.VideoLane, time.Minute)
		return err
	})
	counted("Queue.Reach", func() error { return h.queue.Reach(ctx, job.VideoLane) })
	counted("Runs.Start", start("job_1", "n1"))
	counted("Runs.Progress", func() error { return h.runs.Progress(ctx, "job_1", "n1", 0.5) })
	counted("Delivery.Extend", func() error { return d.Extend(ctx, time.Minute) })
	counted("Runs.Release", func() error { return h.runs.Release(ctx, "job_1", "n1") })
	counted("Delivery.Nack", func() error { return d.Nack(ctx, 0) })
	d = h.receive(t, time.Minute)
	h.start(t, "job_1", "n2")
	counted("Delivery.Complete", func() error { return d.Complete(ctx, "n2", result) })
	ended(t, ctx, h.runs, "job_1")

	h.accept(t, "job_2")
	d = h.receive(t, time.Minute)
	h.start(t, "job_2", "n1")
	counted("Delivery.Fail", func() error { return d.Fail(ctx, "n1", job.TimeoutFailure()) })
	h.accept(t, "job_3")
	d = h.receive(t, time.Minute)
	counted("Delivery.Drop", func() error { return d.Drop(ctx) })
	counted("Jobs.Fail", func() error { return h.jobs.Fail(ctx, "job_3", "", job.WorkerLostFailure(), now) })
	h.accept(t, "job_4")
	counted("Machine.Stop",
		func() error { return stepfn.NewMachine(proxy.Config(), h.machine, h.urls).Stop(ctx, "job_3") })
	list := func() error {
		_, _, err := h.jobs.List(ctx, "acme", job.Filter{}, "", 2, now)
		return err
	}
	counted("Jobs.List", list)
	if err := h.jobs.SpreadJobs(ctx, "acme", now); err != nil {
		t.Fatal(err)
	}
	counted("Jobs.List, of a spread account", list)
	counted("Jobs.Forget", func() error { return h.jobs.Forget(ctx, "job_1") })
	counted("Jobs.Expire", func() error {
		_, err := h.jobs.Expire(ctx, "job_4", now.Add(2*job.MaxAge))
		return err
	})
	counted("Jobs.Accept, with ended jobs in the way", func() error {
		return h.jobs.Accept(ctx, newJob("job_6"), 1)
	})
	unreachable := dynamo.NewJobs(h.runs, stepfn.NewMachine(proxy.Config(), h.machine+"-gone", h.urls), nil, time.Now)
	counted("Jobs.Accept, not handed over", func() error {
		if err := unreachable.Accept(ctx, newJob("job_5"), 10); err == nil {
			return fmt.Errorf("a job was handed to a machine that does not exist")
		}
		return nil
	})
	counted("Jobs.Accept, the first above 500", func() error {
		first := newJob("job_7")
		first.Account = "large"
		return h.jobs.Accept(ctx, first, 501)
	})
	counted("Jobs.Accept, the first above 125", func() error {
		first := newJob("job_9")
		first.Account = "larger"
		return h.jobs.Accept(ctx, first, 126)
	})
	small := other()
	if _, err := small.Backlog(ctx, job.VideoLane, "large", 100); err != nil {
		t.Fatal(err)
	}
	counted("Jobs.Accept, beside another limit", func() error {
		next := newJob("job_10")
		next.Account = "large"
		return small.Accept(ctx, next, 100)
	})
	quiet := dynamo.NewJobs(h.runs, handedOver{}, nil, time.Now)
	many := func(account string, n int) {
		for i := range n {
			one := newJob(fmt.Sprint("job_", account, i))
			one.Account = account
			if err := quiet.Accept(ctx, one, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	many("full", 25)
	full := func() error {
		_, err := other().Backlog(ctx, job.VideoLane, "full", 25)
		return err
	}
	counted("Jobs.Backlog, at a limit of 25 or more", full)
	counted("Jobs.Backlog, at such a limit again", full)
	many("free", 100)
	counted("Jobs.Accept, the 101st without a limit", func() error {
		next := newJob("job_8")
		next.Account = "free"
		return h.jobs.Accept(ctx, next, 0)
	})
	workers := dynamo.NewWorkers(dynamo.NewClient(proxy.Config()), h.table, time.Now)
	counted("Workers.Beat", func() error { return workers.Beat(ctx, job.ImageLane) })
	estimates := dynamo.NewEstimates(dynamo.NewClient(proxy.Config()), h.table)
	counted("Estimates.PublishEstimates", func() error {
		return estimates.PublishEstimates(ctx, job.Estimates{{Points: []job.EstimatePoint{{}}, Slack: 1}}, time.Now())
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
		t.Errorf("the page has %s, which the test does not count", operation)
	}
}
