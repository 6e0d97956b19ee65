package sqsqueue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
	"cutroom/shared/testkit/await"
)

var result = job.Result{Blob: "jobs/a/result-n1", MIME: "video/mp4", Size: 1, SHA256: "00"}

func (h home) accept(t *testing.T, id string) job.Job {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	j := job.Job{
		ID: id, Account: "acme", Key: "key_0123456789ab", Model: "gen-2.5", Lane: job.VideoLane,
		Status: job.Pending, CreatedAt: now, Deadline: now.Add(job.MaxAge),
	}
	if err := h.jobs.Accept(t.Context(), j, 0); err != nil {
		t.Fatal(err)
	}
	return j
}

func (h home) receive(t *testing.T, lease time.Duration) worker.Delivery {
	t.Helper()
	ctx := await.Context(t)
	d, err := h.queue.Receive(ctx, job.VideoLane, lease)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (h home) start(t *testing.T, id, nonce string) {
	t.Helper()
	if _, err := h.runs.Start(t.Context(), id, nonce, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func (h home) stopped(t *testing.T, config aws.Config, id string) string {
	t.Helper()
	client := sfn.NewFromConfig(config)
	arn := strings.Replace(h.machine, ":stateMachine:", ":execution:", 1) + ":" + id
	return await.Value(t, "the execution stops", func() string {
		execution, err := client.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &arn})
		if err != nil {
			t.Fatal(err)
		}
		return string(execution.Status)
	}, func(status string) bool { return status != "RUNNING" })
}

func TestReportsEndJobs(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	config := cloud.Config()

	t.Run("of a run that lost the job leave the token to the current run", func(t *testing.T) {
		h := newHome(t, cloud)
		j := h.accept(t, "job_1")
		lost := h.receive(t, time.Second)
		h.start(t, j.ID, "n1")
		held := h.receive(t, time.Hour)
		h.start(t, j.ID, "n2")
		for what, err := range map[string]error{
			"extend":   lost.Extend(t.Context(), time.Hour),
			"complete": lost.Complete(t.Context(), "n1", result),
			"fail":     lost.Fail(t.Context(), "n1", job.TimeoutFailure()),
		} {
			if !fault.Is(err, fault.Conflict) {
				t.Errorf("%s: error %v, want a conflict", what, err)
			}
		}
		if err := held.Complete(t.Context(), "n2", result); err != nil {
			t.Fatal(err)
		}
		if status := h.stopped(t, config, j.ID); status != "SUCCEEDED" {
			t.Errorf("the execution %s", status)
		}
	})

	t.Run("end the job themselves if its execution has ended", func(t *testing.T) {
		for _, end := range []struct {
			name   string
			report func(d worker.Delivery) error
			want   job.Status
		}{
			{"complete", func(d worker.Delivery) error { return d.Complete(t.Context(), "n1", result) }, job.Completed},
			{"fail", func(d worker.Delivery) error { return d.Fail(t.Context(), "n1", job.TimeoutFailure()) }, job.Failed},
		} {
			h := newHome(t, cloud)
			j := h.accept(t, "job_1")
			token := h.token(t, config)
			d := h.receive(t, time.Hour)
			h.start(t, j.ID, "n1")
			// The report of another run uses up the token, but its write is rejected.
			if err := h.tasks.Fail(t.Context(), token, "another run", job.TimeoutFailure()); err != nil {
				t.Fatal(err)
			}
			if status := h.stopped(t, config, j.ID); status != "FAILED" {
				t.Fatalf("the execution %s", status)
			}
			if err := end.report(d); err != nil {
				t.Fatalf("%s: %v", end.name, err)
			}
			if got := ended(t, t.Context(), h.runs, j.ID); got.Status != end.want {
				t.Errorf("%s: the job is %s, want %s", end.name, got.Status, end.want)
			}
		}
	})

	t.Run("record how and when a run ended", func(t *testing.T) {
		h := newHome(t, cloud)
		failure := job.Failure{Code: job.InvalidInput, Message: "The clip is \"broken\", or {worse}: $.Cause é"}
		j := h.accept(t, "job_1")
		d := h.receive(t, time.Hour)
		h.start(t, j.ID, "n1")
		if err := d.Fail(t.Context(), "n1", failure); err != nil {
			t.Fatal(err)
		}
		got := ended(t, t.Context(), h.runs, j.ID)
		if *got.Failure != failure || got.Nonce != "n1" {
			t.Errorf("run %q failed the job with %+v, want %+v", got.Nonce, got.Failure, failure)
		}
		if got.CompletedAt.Before(got.StartedAt) || time.Since(got.CompletedAt) > time.Hour {
			t.Errorf("the job started at %v and ended at %v", got.StartedAt, got.CompletedAt)
		}
	})

	t.Run("leave the job to its deadline after that has passed", func(t *testing.T) {
		h := newHome(t, cloud)
		j := h.accept(t, "job_1")
		d := h.receive(t, time.Hour)
		h.start(t, j.ID, "n1")
		h.queue.Now = func() time.Time { return j.Deadline }
		if err := d.Complete(t.Context(), "n1", result); !fault.Is(err, fault.Conflict) {
			t.Errorf("complete: error %v, want a conflict", err)
		}
	})
}

// token returns the next video job's token. The job can be received again after a second.
func (h home) token(t *testing.T, config aws.Config) string {
	t.Helper()
	client := awssqs.NewFromConfig(config)
	var received *awssqs.ReceiveMessageOutput
	await.Until(t, "a message", func() (come bool) {
		var err error
		received, err = client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{
			QueueUrl: &h.video.URL, WaitTimeSeconds: 20, VisibilityTimeout: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(received.Messages) == 1
	})
	message, err := sqsqueue.ReadMessage(*received.Messages[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	return message.Token
}

// A job times out 15 s before its deadline. The local AWS does not support TimeoutSecondsPath, so
// this test uses a fixed timeout of two seconds.
func TestExecutionTimesOut(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	h := newHome(t, cloud, `"TimeoutSecondsPath": "$.timeout"`, `"TimeoutSeconds": 2`)
	waiting := h.accept(t, "job_1")
	failure := job.TimeoutFailure()
	if got := ended(t, t.Context(), h.runs, waiting.ID); *got.Failure != failure {
		t.Errorf("the waiting job failed with %+v", got.Failure)
	}
	if d := h.receive(t, time.Hour); d.JobID() == waiting.ID {
		if _, err := h.runs.Start(t.Context(), waiting.ID, "n1", time.Now()); !fault.Is(err, fault.Conflict) {
			t.Errorf("starting a run of the job: %v", err)
		}
	}
}

func TestForeignMessagesGoToDeadLetterQueue(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	h := newHome(t, cloud)
	client := awssqs.NewFromConfig(cloud.Config())
	bodies := []string{"no JSON", `{"job": "job_1"}`, `{"token": "a"}`}
	for _, body := range bodies {
		if _, err := client.SendMessage(t.Context(),
			&awssqs.SendMessageInput{QueueUrl: &h.video.URL, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	j := h.accept(t, "job_2")
	if d := h.receive(t, time.Hour); d.JobID() != j.ID {
		t.Fatalf("received %s", d.JobID())
	}
	// The queue delivers the foreign messages repeatedly, then moves them to its dead-letter queue.
	ctx, cancel := context.WithTimeout(t.Context(), await.Max)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		if _, err := h.queue.Receive(ctx, job.VideoLane, time.Hour); err == nil {
			t.Error("received a message that does not name a job")
		}
	})
	defer receiving.Wait()
	defer cancel()
	dead := map[string]bool{}
	for len(dead) < len(bodies) {
		received, err := client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{
			QueueUrl: &h.video.DeadLetterURL, MaxNumberOfMessages: 10, VisibilityTimeout: 60, WaitTimeSeconds: 5,
		})
		if err != nil {
			t.Fatalf("the dead-letter queue has %v: %v", dead, err)
		}
		for _, message := range received.Messages {
			dead[*message.Body] = true
		}
	}
	for _, body := range bodies {
		if !dead[body] {
			t.Errorf("the dead-letter queue has %v, want %v", dead, bodies)
		}
	}
}

func TestQueueLengthCountsAllMessages(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	queue := cloud.MakeQueue(t, 10)
	client := awssqs.NewFromConfig(cloud.Config())
	for i := range 3 {
		if _, err := client.SendMessage(t.Context(), &awssqs.SendMessageInput{
			QueueUrl: &queue.URL, MessageBody: aws.String(fmt.Sprint(i)), DelaySeconds: int32(i / 2 * 900),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &queue.URL}); err != nil {
		t.Fatal(err)
	}
	lengths := sqsqueue.NewLengths(cloud.Config(), map[job.Lane]string{job.VideoLane: queue.URL})
	if n, err := lengths.Length(t.Context(), job.VideoLane); err != nil || n != 3 {
		t.Errorf("with one waiting, one leased and one delayed message the length is %d (%v), want 3", n, err)
	}
	if _, err := lengths.Length(t.Context(), job.ImageLane); err == nil {
		t.Error("a lane without a queue has a length")
	}
}
