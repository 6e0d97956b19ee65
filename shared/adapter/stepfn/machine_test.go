package stepfn_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/awstest"
)

func newJob() job.Job {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return job.Job{
		ID: "job_1", Account: "acme", Model: "gen-2.5", Lane: job.VideoLane, Status: job.Pending,
		CreatedAt: now, Deadline: now.Add(job.MaxAge),
	}
}

var entry = dynamo.OpenEntry{Set: "account#acme#3", Element: "video/job_1"}

func newMachine(t *testing.T, cloud *awstest.Cloud) (arn string, queue awstest.Queue) {
	t.Helper()
	definition, err := stepfn.Definition("aws", cloud.MakeTable(t, "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	return cloud.MakeStateMachine(t, definition), cloud.MakeQueue(t, 10)
}

func TestDispatchStartsOneExecution(t *testing.T) {
	cloud := local.Cloud(t)
	t.Run("sends the job to its lane's queue, in its account's group", func(t *testing.T) {
		arn, queue := newMachine(t, cloud)
		machine := stepfn.NewMachine(cloud.Config(), arn, map[job.Lane]string{job.VideoLane: queue.URL})
		if err := machine.Dispatch(t.Context(), newJob(), entry); err != nil {
			t.Fatal(err)
		}
		message := receive(t, cloud, queue)
		if body := *message.Body; !strings.Contains(body, `"job_1"`) || !strings.Contains(body, `"token"`) {
			t.Errorf("the message is %s", body)
		}
		if group := message.Attributes["MessageGroupId"]; group != "acme" {
			t.Errorf("the message is in the group %q", group)
		}
	})
	t.Run("repeated starts one execution", func(t *testing.T) {
		arn, queue := newMachine(t, cloud)
		machine := stepfn.NewMachine(cloud.Config(), arn, map[job.Lane]string{job.VideoLane: queue.URL})
		for range 3 {
			if err := machine.Dispatch(t.Context(), newJob(), entry); err != nil {
				t.Fatal(err)
			}
		}
		executions, err := sfn.NewFromConfig(cloud.Config()).ListExecutions(t.Context(),
			&sfn.ListExecutionsInput{StateMachineArn: &arn})
		if err != nil {
			t.Fatal(err)
		}
		if len(executions.Executions) != 1 {
			t.Errorf("got %d executions, want 1", len(executions.Executions))
		}
	})
	t.Run("ends 15 s before the deadline, or earlier if the job does not start in time, and contains the set of open jobs", func(t *testing.T) {
		arn, queue := newMachine(t, cloud)
		machine := stepfn.NewMachine(cloud.Config(), arn, map[job.Lane]string{job.VideoLane: queue.URL})
		j := newJob()
		j.Request.Options, j.Deadline = map[string]any{job.StartWithin: int64(20)}, j.CreatedAt.Add(20*time.Second)
		if err := machine.Dispatch(t.Context(), j, entry); err != nil {
			t.Fatal(err)
		}
		execution := strings.Replace(arn, ":stateMachine:", ":execution:", 1) + ":job_1"
		started, err := sfn.NewFromConfig(cloud.Config()).DescribeExecution(t.Context(),
			&sfn.DescribeExecutionInput{ExecutionArn: &execution})
		if err != nil {
			t.Fatal(err)
		}
		var input struct {
			Timeout, Rest int
			Open          struct {
				Set      string
				Elements []string
			}
		}
		if err := json.Unmarshal([]byte(*started.Input), &input); err != nil {
			t.Fatal(err)
		}
		if input.Timeout != 20 || input.Rest != 565 {
			t.Errorf("the job has %d s to start and %d s more to run, want 20 and 565", input.Timeout, input.Rest)
		}
		if got := input.Open; got.Set != entry.Set || !slices.Equal(got.Elements, []string{entry.Element}) {
			t.Errorf("the entry of the open jobs is %+v, want %+v", got, entry)
		}
	})
}

func TestStopEndsExecution(t *testing.T) {
	cloud := local.Cloud(t)
	arn, queue := newMachine(t, cloud)
	machine := stepfn.NewMachine(cloud.Config(), arn, map[job.Lane]string{job.VideoLane: queue.URL})
	if err := machine.Dispatch(t.Context(), newJob(), entry); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := machine.Stop(t.Context(), "job_1"); err != nil {
			t.Fatal(err)
		}
	}
	execution := strings.Replace(arn, ":stateMachine:", ":execution:", 1) + ":job_1"
	stopped, err := sfn.NewFromConfig(cloud.Config()).DescribeExecution(t.Context(),
		&sfn.DescribeExecutionInput{ExecutionArn: &execution})
	if err != nil || stopped.Status != sfntypes.ExecutionStatusAborted {
		t.Errorf("the execution is %+v, %v", stopped, err)
	}
	if err := machine.Stop(t.Context(), "job_that_never_was"); err != nil {
		t.Errorf("a missing execution: %v", err)
	}
	if err := stepfn.NewMachine(cloud.Proxy(t, 1, awstest.Faults{Failed: 1}).Config(), arn, nil).Stop(t.Context(),
		"job_1"); err == nil {
		t.Error("errors inside AWS were not reported")
	}
}

func TestFailedDispatchReportsWhetherItIsDefinite(t *testing.T) {
	cloud := local.Cloud(t)
	arn, queue := newMachine(t, cloud)
	urls := map[job.Lane]string{job.VideoLane: queue.URL}
	image := newJob()
	image.Lane = job.ImageLane
	for _, c := range []struct {
		name     string
		arn      string
		faults   awstest.Faults
		job      job.Job
		definite bool
		code     fault.Code
	}{
		{"throttled", arn, awstest.Faults{Throttled: 1}, newJob(), true, fault.Limited},
		{"a missing machine", arn + "-gone", awstest.Faults{}, newJob(), true, fault.Internal},
		{"a lane without a queue", arn, awstest.Faults{}, image, true, fault.Internal},
		{"errors inside AWS", arn, awstest.Faults{Failed: 1}, newJob(), false, fault.Internal},
		{"lost calls", arn, awstest.Faults{LostCalls: 1}, newJob(), false, fault.Internal},
		{"lost answers", arn, awstest.Faults{LostAnswers: 1}, newJob(), false, fault.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			proxy := cloud.Proxy(t, 1, c.faults)
			err := stepfn.NewMachine(proxy.Config(), c.arn, urls).Dispatch(t.Context(), c.job, entry)
			if err == nil {
				t.Fatal("the job was queued")
			}
			if definite := errors.As(err, new(*fault.Error)); definite != c.definite || fault.CodeOf(err) != c.code {
				t.Errorf("error %v of code %s, definite %v, want %s, %v", err, fault.CodeOf(err), definite, c.code, c.definite)
			}
		})
	}
}

func TestLateReportsAreConflicts(t *testing.T) {
	tasks := stepfn.NewTasks(local.Cloud(t).Config())
	for what, err := range map[string]error{
		"a result":  tasks.Succeed(t.Context(), "gone"),
		"a failure": tasks.Fail(t.Context(), "gone", "n1", job.TimeoutFailure()),
	} {
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: error %v, want a conflict", what, err)
		}
	}
}

func receive(t *testing.T, cloud *awstest.Cloud, queue awstest.Queue) types.Message {
	t.Helper()
	received, err := sqs.NewFromConfig(cloud.Config()).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &queue.URL, WaitTimeSeconds: 20,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(received.Messages) != 1 {
		t.Fatal("no message")
	}
	return received.Messages[0]
}
