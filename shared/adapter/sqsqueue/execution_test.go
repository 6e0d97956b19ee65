package sqsqueue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/conformance"
)

// Late reports change nothing, and neither do reports of a run that lost the job.
func TestExecutionWritesOnCondition(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	failure := job.Failure{Code: job.EngineError, Message: "The engine failed."}
	fail := func(nonce string) func(ctx context.Context, h home, token string) error {
		return func(ctx context.Context, h home, token string) error { return h.tasks.Fail(ctx, token, nonce, failure) }
	}
	for _, c := range []struct {
		name   string
		age    time.Duration // the job's age when its run starts
		ended  bool          // whether the job ended before the report
		report func(ctx context.Context, h home, token string) error
		status job.Status
		writes bool
	}{
		{"a run fails its job", 0, false, fail("n1"), job.Failed, true},
		{"a job is failed during any run", 0, false, fail(""), job.Failed, true},
		{"a run fails its job past the deadline", job.MaxAge, false, fail("n1"), job.Failed, true},
		{"another run fails the job", 0, false, fail("n2"), job.Processing, false},
		{"a run fails a job that has ended", 0, true, fail("n1"), job.Failed, false},
		{"an ended job is failed during any run", 0, true, fail(""), job.Failed, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, cloud)
			created := time.Now().Add(-c.age).UTC().Truncate(time.Millisecond)
			if err := h.jobs.Accept(t.Context(), job.Job{
				ID: "job_1", Account: "acme", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
				CreatedAt: created, Deadline: created.Add(job.MaxAge),
			}, 0); err != nil {
				t.Fatal(err)
			}
			token := h.token(t, cloud.Config())
			if _, err := h.runs.Start(t.Context(), "job_1", "n1", created); err != nil {
				t.Fatal(err)
			}
			if c.ended {
				if err := h.runs.Fail(t.Context(), "job_1", "", job.WorkerLostFailure(), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			before, err := h.runs.Get(t.Context(), "job_1")
			if err != nil {
				t.Fatal(err)
			}
			// A conflict means that a report was accepted but its response was lost. Its effect is checked below.
			if err := c.report(t.Context(), h, token); err != nil && !fault.Is(err, fault.Conflict) {
				t.Fatal(err)
			}
			status := h.stopped(t, cloud.Config(), "job_1")
			after, err := h.runs.Get(t.Context(), "job_1")
			if err != nil {
				t.Fatal(err)
			}
			if after.Status != c.status {
				t.Errorf("the job is %s, want %s", after.Status, c.status)
			}
			if wrote := after.CompletedAt != before.CompletedAt; wrote != c.writes || (status == "SUCCEEDED") != c.writes {
				t.Errorf("the execution %s, wrote: %v, want %v", status, wrote, c.writes)
			}
			if err := c.report(t.Context(), h, token); !fault.Is(err, fault.Conflict) {
				t.Errorf("the token was accepted twice: %v", err)
			}
			states := 2
			if c.writes {
				states = 3
			}
			conformance.Same(t, "states of the execution", h.statesOf(t, cloud), states)
			backlog, err := h.jobs.Backlog(t.Context(), job.VideoLane, "acme")
			conformance.OK(t, err)
			open := 0
			if c.status == job.Processing {
				open = 1
			}
			conformance.Same(t, "open jobs", backlog.AccountOpen, open)
		})
	}
}

// No worker needs to run for a job to fail on time, and a job that has started keeps its deadline. The local AWS does
// not support TimeoutSecondsPath.
func TestExecutionFailsJobThatDoesNotStart(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	for started, want := range map[bool]job.Failure{false: job.StartTimeoutFailure(), true: job.TimeoutFailure()} {
		t.Run(fmt.Sprint("started: ", started), func(t *testing.T) {
			t.Parallel()
			h := newHome(t, cloud, `"TimeoutSecondsPath": "$.timeout"`, `"TimeoutSeconds": 2`,
				`"SecondsPath": "$.rest"`, `"Seconds": 2`)
			created := time.Now().UTC().Truncate(time.Millisecond)
			conformance.OK(t, h.jobs.Accept(t.Context(), job.Job{
				ID: "job_1", Account: "acme", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
				Request:   job.Request{Options: map[string]any{job.StartWithin: int64(2)}},
				CreatedAt: created, Deadline: created.Add(2 * time.Second),
			}, 0))
			if started {
				_, err := h.runs.Start(t.Context(), "job_1", "n1", created)
				conformance.OK(t, err)
			}
			conformance.Same(t, "status of the execution", h.stopped(t, cloud.Config(), "job_1"), "SUCCEEDED")
			j, err := h.runs.Get(t.Context(), "job_1")
			conformance.OK(t, err)
			conformance.Same(t, "failure", *j.Failure, want)
			backlog, err := h.jobs.Backlog(t.Context(), job.VideoLane, "acme")
			conformance.OK(t, err)
			conformance.Same(t, "open jobs", backlog.AccountOpen, 0)
		})
	}
}

func (h home) statesOf(t *testing.T, cloud *awstest.Cloud) int {
	t.Helper()
	arn := strings.Replace(h.machine, ":stateMachine:", ":execution:", 1) + ":job_1"
	history, err := sfn.NewFromConfig(cloud.Config()).GetExecutionHistory(t.Context(),
		&sfn.GetExecutionHistoryInput{ExecutionArn: &arn})
	if err != nil {
		t.Fatal(err)
	}
	states := 0
	for _, event := range history.Events {
		if strings.HasSuffix(string(event.Type), "StateEntered") {
			states++
		}
	}
	return states
}

// Receive fails immediately instead of waiting.
func TestLaneWithoutQueueIsAnError(t *testing.T) {
	queue := sqsqueue.New(sqsqueue.Config{AWS: awstest.ConfigFor("http://127.0.0.1:9"), URLs: map[job.Lane]string{}})
	defer queue.Close()
	if _, err := queue.Receive(t.Context(), job.VideoLane, time.Minute); err == nil {
		t.Error("received from a lane without a queue")
	}
	if _, err := queue.Receive(t.Context(), job.VideoLane, 0); err == nil {
		t.Error("received without a lease")
	}
}
