package functions_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
)

// callsOfAJob contains the minimum and maximum number of AWS calls for one job, from its submission until its
// thumbnails are stored. docs/cost.md lists their prices. Calls of the state machine are counted as transitions.
var callsOfAJob = map[string]struct{ least, most int }{
	"DynamoDB.Query":                {4, 4},
	"DynamoDB.TransactWriteItems":   {2, 2},
	"S3.PUT":                        {3, 3},
	"S3.GET":                        {2, 2},
	"S3.DELETE":                     {1, 1}, // the job's input
	"SQS.DeleteMessage":             {1, 1},
	"StepFunctions.StartExecution":  {1, 1},
	"StepFunctions.SendTaskSuccess": {1, 1},
	"transitions":                   {3, 3},
	// The account's sets of open jobs are read by two capacity checks and when the job is accepted. Counts vary,
	// because caches may expire between the first job and the measured one, and because the worker reports and polls
	// while it works.
	"DynamoDB.BatchGetItem":       {3, 4},
	"DynamoDB.GetItem":            {1, 6},
	"DynamoDB.UpdateItem":         {2, 7},
	"SQS.GetQueueAttributes":      {0, 2},
	"SQS.ReceiveMessage":          {1, 8},
	"SQS.ChangeMessageVisibility": {0, 2},
}

// The job passes through the function, the state machine and a worker.
func TestJobNeedsFewCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.start(t, "jobs")
	function := w.proxy
	w.work(t)
	worker := w.proxy
	calls := map[string]int{}
	// count adds the calls made since it was last called. more reports whether any of them was something other than
	// the worker's poll for its next job.
	count := func() (more bool) {
		for _, proxy := range []*awstest.Proxy{function, worker} {
			for call, n := range proxy.Calls() {
				calls[call] += n
				more = more || call != "SQS.ReceiveMessage"
			}
		}
		return more
	}
	event, err := os.ReadFile(filepath.Join("..", "events", "jobs", "image.json"))
	must(t, err)
	// This account has no budgets, files or other jobs.
	event = bytes.ReplaceAll(event, []byte(sampleKey), []byte(sampleLister))
	run := func() string {
		submitted, err := f.Request(t.Context(), event)
		must(t, err)
		defer submitted.Body.Close()
		var answer struct {
			ID string `json:"job_id"`
		}
		if err := json.NewDecoder(submitted.Body).Decode(&answer); err != nil || submitted.Status != 200 {
			t.Fatalf("submit: %d, %v", submitted.Status, err)
		}
		j := await.Value(t, "the job ends", func() job.Job {
			j, err := w.jobs.Get(t.Context(), answer.ID)
			must(t, err)
			return j
		}, func(j job.Job) bool { return j.Status.Terminal() })
		if j.Status != job.Completed {
			t.Fatalf("the job is %s: %+v", j.Status, j.Failure)
		}
		quiet := time.Now()
		await.Until(t, "the worker has finished the job", func() bool {
			if count() {
				quiet = time.Now()
			}
			return calls["S3.PUT"] >= 3 && time.Since(quiet) > 3*time.Second
		})
		return answer.ID
	}
	run() // the first job fills both programs' caches
	clear(calls)
	id := run()
	calls["transitions"] = w.transitions(t, id)
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		want, known := callsOfAJob[call]
		if n := calls[call]; !known || n < want.least || n > want.most {
			t.Errorf("%d %s, want %d to %d", n, call, want.least, want.most)
		}
	}
	for call, want := range callsOfAJob {
		if want.least > 0 && calls[call] == 0 {
			t.Errorf("no %s, want at least %d", call, want.least)
		}
	}
}

// transitions returns the number of billed state transitions for a job.
func (w *world) transitions(t *testing.T, id string) (n int) {
	t.Helper()
	arn := strings.Replace(w.machine, ":stateMachine:", ":execution:", 1) + ":" + id
	history, err := sfn.NewFromConfig(w.cloud.Config()).GetExecutionHistory(t.Context(),
		&sfn.GetExecutionHistoryInput{ExecutionArn: &arn})
	must(t, err)
	for _, event := range history.Events {
		switch {
		case event.Type == sfntypes.HistoryEventTypeExecutionStarted,
			event.Type == sfntypes.HistoryEventTypeExecutionSucceeded,
			strings.HasSuffix(string(event.Type), "StateEntered"):
			n++
		}
	}
	return n
}
