package sqsqueue_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
)

var executionsFolder = filepath.Join("testdata", "versions")

// keptExecution is a version's state machine and the input of an execution. TABLE, QUEUE and JOB
// stand for a deployment's names.
type keptExecution struct {
	Definition string          `json:"definition"`
	Input      json.RawMessage `json:"input"`
}

type handedOver struct{}

func (handedOver) Dispatch(context.Context, job.Job, dynamo.OpenEntry) error { return nil }

// A deployment replaces the earlier version's state machine and workers with the current ones.
func TestExecutionsOfEarlierVersionsEndOnce(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(filepath.Join(executionsFolder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("fixtures: %v, %v", names, err)
	}
	cloud := local.Cloud(t)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var kept keptExecution
			if err := json.Unmarshal(text, &kept); err != nil {
				t.Fatal(err)
			}
			testUpdate(t, cloud, kept)
		})
	}
}

func testUpdate(t *testing.T, cloud *awstest.Cloud, kept keptExecution) {
	h := newHome(t, cloud)
	client := sfn.NewFromConfig(cloud.Config())
	today, err := stepfn.Definition("aws", h.table)
	if err != nil {
		t.Fatal(err)
	}
	define := func(definition string) {
		t.Helper()
		if _, err := client.UpdateStateMachine(t.Context(), &sfn.UpdateStateMachineInput{
			StateMachineArn: &h.machine, Definition: &definition,
		}); err != nil {
			t.Fatal(err)
		}
	}
	define(strings.ReplaceAll(kept.Definition, "TABLE", h.table))
	service := h.jobs
	h.jobs = dynamo.NewJobs(h.runs, handedOver{}, sqsqueue.NewLengths(cloud.Config(), h.urls), time.Now)
	begin := func(id string) {
		t.Helper()
		h.accept(t, id)
		input := strings.NewReplacer("QUEUE", h.video.URL, "JOB", id).Replace(string(kept.Input))
		if _, err := client.StartExecution(t.Context(), &sfn.StartExecutionInput{
			StateMachineArn: &h.machine, Name: &id, Input: &input,
		}); err != nil {
			t.Fatal(err)
		}
	}
	// One job was leased by an earlier worker, which loses the lease. Another is queued. The third
	// has a failed run, which its next worker reports.
	begin("job_begun")
	if d := h.receive(t, time.Second); d.JobID() != "job_begun" {
		t.Fatalf("%s was received", d.JobID())
	}
	h.start(t, "job_begun", "old")
	begin("job_waiting")
	begin("job_failing")

	define(today)
	h.jobs = service
	h.accept(t, "job_new")
	failure := job.Failure{Code: job.EngineError, Message: "The engine failed."}
	for done := 0; done < 4; done++ {
		d := h.receive(t, time.Hour)
		id := d.JobID()
		h.start(t, id, "new")
		if id == "job_failing" {
			err = d.Fail(t.Context(), "new", failure)
		} else {
			err = d.Complete(t.Context(), "new", result)
		}
		if err != nil {
			t.Errorf("the end of %s: %v", id, err)
		}
	}
	for _, id := range []string{"job_begun", "job_waiting", "job_failing", "job_new"} {
		want, ends := job.Completed, "SUCCEEDED"
		if id == "job_failing" {
			// The earlier version's input does not name the set of open jobs, so the execution
			// fails after its job has ended.
			want, ends = job.Failed, "FAILED"
		}
		if status := h.stopped(t, cloud.Config(), id); status != ends {
			t.Errorf("the execution of %s has %s", id, status)
		}
		got, err := h.runs.Get(t.Context(), id)
		if err != nil || got.Status != want || got.Nonce != "new" {
			t.Errorf("%s is %+v, %v", id, got, err)
		}
		// A late report from the old worker changes nothing.
		if err := h.runs.Complete(t.Context(), id, "old", result, time.Now()); err == nil {
			t.Errorf("%s ended twice", id)
		}
	}
}
