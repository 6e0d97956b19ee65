package dynamo_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/usage"
	"cutroom/shared/testkit/conformance"
)

func newJob(id string) job.Job {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return job.Job{
		ID: id, Account: "acme", Key: "key_0123456789ab", Model: "gen-2.5", Lane: job.VideoLane, Seed: 7,
		Status: job.Pending, CreatedAt: now, Deadline: now.Add(job.MaxAge),
	}
}

func TestFailedDispatchUndoesAcceptance(t *testing.T) {
	cloud := local.Cloud(t)
	refusal := fault.New(fault.Limited, "Too many.")
	t.Run("a definite error leaves nothing", func(t *testing.T) {
		dispatcher := &handedOver{err: refusal}
		jobs, _ := newJobs(t, cloud, dispatcher)
		counts := dynamo.NewUsage(dynamo.NewClient(cloud.Config()), cloud.MakeTable(t, "usage"))
		jobs.CountIn(counts)
		if err := jobs.Accept(t.Context(), newJob("job_1"), 1); !fault.Is(err, fault.Limited) {
			t.Fatalf("error %v, want the dispatcher's error", err)
		}
		if _, err := jobs.Get(t.Context(), "job_1"); !fault.Is(err, fault.NotFound) {
			t.Errorf("the record: %v, want not found", err)
		}
		used, err := counts.Totals(t.Context(), "acme", "0000-00-00", "9999-99-99", usage.All)
		if err != nil || len(used) != 0 {
			t.Errorf("the job was counted: %+v, %v", used, err)
		}
		dispatcher.err = nil
		if err := jobs.Accept(t.Context(), newJob("job_2"), 1); err != nil {
			t.Errorf("another job of the account: %v", err)
		}
	})
	t.Run("an ambiguous error leaves the job to its deadline", func(t *testing.T) {
		jobs, _ := newJobs(t, cloud, &handedOver{err: errors.New("connection reset")})
		err := jobs.Accept(t.Context(), newJob("job_1"), 1)
		if err == nil || errors.As(err, new(*fault.Error)) {
			t.Fatalf("error %v, want an error that is not a fault", err)
		}
		if j, err := jobs.Get(t.Context(), "job_1"); err != nil || j.Status != job.Pending {
			t.Errorf("the job is %s (%v)", j.Status, err)
		}
		if err := jobs.Accept(t.Context(), newJob("job_2"), 1); !fault.Is(err, fault.Limited) {
			t.Errorf("another job of the account: %v, want limited", err)
		}
	})
	t.Run("a repeated acceptance queues the job again", func(t *testing.T) {
		dispatcher := &handedOver{err: errors.New("connection reset")}
		jobs, _ := newJobs(t, cloud, dispatcher)
		if err := jobs.Accept(t.Context(), newJob("job_1"), 1); err == nil {
			t.Fatal("the job was accepted")
		}
		dispatcher.err = nil
		again := newJob("job_1")
		again.Account = "other"
		if err := jobs.Accept(t.Context(), again, 1); err != nil {
			t.Fatal(err)
		}
		if last := dispatcher.jobs[len(dispatcher.jobs)-1]; len(dispatcher.jobs) != 2 || last.Account != "acme" {
			t.Errorf("queued %+v, want the recorded job twice", dispatcher.jobs)
		}
		conformance.Same(t, "the entry of the open jobs", dispatcher.open[1], dispatcher.open[0])
	})
	t.Run("a failed repetition does not undo the first acceptance", func(t *testing.T) {
		dispatcher := &handedOver{}
		jobs, _ := newJobs(t, cloud, dispatcher)
		if err := jobs.Accept(t.Context(), newJob("job_1"), 1); err != nil {
			t.Fatal(err)
		}
		dispatcher.err = refusal
		if err := jobs.Accept(t.Context(), newJob("job_1"), 1); !fault.Is(err, fault.Limited) {
			t.Fatalf("error %v, want the dispatcher's error", err)
		}
		if _, err := jobs.Get(t.Context(), "job_1"); err != nil {
			t.Error(err)
		}
	})
}

func TestJobItemsExpire(t *testing.T) {
	jobs, count := newJobs(t, local.Cloud(t), &handedOver{})
	j := newJob("job_1")
	if err := jobs.Accept(t.Context(), j, 0); err != nil {
		t.Fatal(err)
	}
	found, err := count.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &count.table})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range found.Items {
		part := item["part"].(*types.AttributeValueMemberS).Value
		ttl, ok := item["ttl"].(*types.AttributeValueMemberN)
		if !ok {
			t.Errorf("%s has no TTL", part)
			continue
		}
		var seconds int64
		if _, err := fmt.Sscan(ttl.Value, &seconds); err != nil {
			t.Fatal(err)
		}
		least := j.Deadline.Add(job.DefaultRecordAge)
		if part == "open" {
			least = j.Deadline
		}
		if ends := time.Unix(seconds, 0); ends.Before(least) || ends.After(least.Add(48*time.Hour)) {
			t.Errorf("%s expires at %v, want soon after %v", part, ends, least)
		}
	}
	if found.Count != 3 {
		t.Errorf("a job has %d items, want 2", found.Count)
	}
}

func TestHeartbeatMarksWorkersAsWarm(t *testing.T) {
	cloud := local.Cloud(t)
	now := time.Now()
	workers := dynamo.NewWorkers(dynamo.NewClient(cloud.Config()), cloud.MakeTable(t, "jobs"),
		func() time.Time { return now })
	warm := func(lane job.Lane, want bool) {
		t.Helper()
		if got, err := workers.Warm(t.Context(), lane); err != nil || got != want {
			t.Errorf("%s has workers: %v (%v), want %v", lane, got, err, want)
		}
	}
	beat := func(lane job.Lane) {
		t.Helper()
		if err := workers.Beat(t.Context(), lane); err != nil {
			t.Fatal(err)
		}
	}
	warm(job.ImageLane, false)
	beat(job.ImageLane)
	warm(job.ImageLane, true)
	warm(job.VideoLane, false)
	seen := now
	now = seen.Add(-time.Minute)
	beat(job.ImageLane) // by a worker whose clock is behind
	now = seen.Add(dynamo.WarmFor - time.Second)
	warm(job.ImageLane, true)
	now = seen.Add(dynamo.WarmFor)
	warm(job.ImageLane, false)
}
