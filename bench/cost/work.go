package cost

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"cutroom/shared/app/awscost"
)

// work is what runs behind a submission: the state machine, the function wake, which
// every execution starts, and a worker.
type work struct {
	w         *world
	t         *tally
	wake      *part
	wakeEvent []byte
	worker    *workerProcess
	machine   *sfn.Client
	through   *tap
	jobs      int
	// seen are the executions so far.
	seen map[string]bool
}

func (w *world) newWork(ctx context.Context, t *tally) (*work, error) {
	event, err := sample("events", "wake", "running.json")
	if err != nil {
		return nil, err
	}
	wake, err := t.function(ctx, "wake", false)
	if err != nil {
		return nil, err
	}
	through := w.newTap()
	t.taps = append(t.taps, through)
	worker, err := w.work(ctx, through)
	if err != nil {
		return nil, err
	}
	// One that runs needs no wake, and no run of the function that waits for the rest of a burst.
	if err := w.want(ctx, 1); err != nil {
		return nil, err
	}
	k := &work{
		w: w, t: t, wake: wake, wakeEvent: event, worker: worker, machine: sfn.NewFromConfig(w.cloud.Config()),
		through: through, seen: map[string]bool{},
	}
	executions, err := k.machine.ListExecutions(ctx, &sfn.ListExecutionsInput{StateMachineArn: &w.machine})
	if err != nil {
		return nil, err
	}
	for _, execution := range executions.Executions {
		k.seen[*execution.Name] = true
	}
	return k, nil
}

// finish waits until a job has ended, and counts its execution.
func (k *work) finish(ctx context.Context, id string) error {
	k.jobs++
	if err := k.wake.invoke(ctx, k.wakeEvent); err != nil {
		return err
	}
	if err := until(ctx, "the job ends", func() (bool, error) {
		j, err := k.w.jobs.Get(ctx, id)
		if err == nil && j.Failure != nil {
			err = fmt.Errorf("the job failed: %v", *j.Failure)
		}
		return j.Status.Terminal(), err
	}); err != nil {
		return err
	}
	// After that the worker deletes the message and records the time, stores the thumbnails
	// beside the result, and looks whether the job was deleted meanwhile.
	if err := until(ctx, "the worker is done with the job", func() (bool, error) {
		calls, _, err := k.through.taken()
		jobs := float64(k.t.runs + 1)
		return calls["SQS.DeleteMessage"] >= jobs && calls["S3.PUT"] >= 2*jobs && calls["DynamoDB.Query"] >= 2*jobs, err
	}); err != nil {
		return err
	}
	return k.execution(ctx, id)
}

// execution counts the transitions of a job's execution, including its start and its end,
// and the calls that its states make.
func (k *work) execution(ctx context.Context, id string) error {
	arn := strings.Replace(k.w.machine, ":stateMachine:", ":execution:", 1) + ":" + id
	history, err := k.machine.GetExecutionHistory(ctx, &sfn.GetExecutionHistoryInput{ExecutionArn: &arn})
	if err != nil {
		return err
	}
	for _, event := range history.Events {
		switch kind := event.Type; {
		case kind == sfntypes.HistoryEventTypeExecutionStarted, kind == sfntypes.HistoryEventTypeExecutionSucceeded,
			strings.HasSuffix(string(kind), "StateEntered"):
			k.t.others[awscost.Transition]++
		case kind == sfntypes.HistoryEventTypeTaskScheduled:
			if err := k.task(id, event.TaskScheduledEventDetails); err != nil {
				return err
			}
		}
	}
	return nil
}

// task counts a state's call of another service.
func (k *work) task(id string, task *sfntypes.TaskScheduledEventDetails) error {
	// AWS separates the service and its action; the local AWS returns the ARN.
	switch resource := *task.ResourceType + ":" + *task.Resource; {
	case strings.Contains(resource, "sqs:sendMessage"):
		k.t.calls["SQS.SendMessage"]++
		k.t.others.Add(awscost.Quantities{awscost.QueueRequest: 1, awscost.FairQueueRequest: 1}, 1)
	case strings.Contains(resource, "dynamodb:updateItem"):
		k.t.calls["DynamoDB.UpdateItem"]++
		after, err := k.record(id)
		if err != nil {
			return err
		}
		k.t.others.Add(awscost.Quantities{awscost.WriteUnit: writes(nil, after)}, 1)
	default:
		return fmt.Errorf("the execution asks for %q, which has no price here", resource)
	}
	return nil
}

// record reads the record of a job.
func (k *work) record(id string) (record, error) {
	for name, table := range k.w.schema {
		if table.Name == "jobs" {
			return k.through.read(name, record{"id": map[string]any{"S": id}, "part": map[string]any{"S": "record"}})
		}
	}
	return nil, errors.New("the schema has no table of jobs")
}

// latest returns the job of the one execution that was not returned before.
func (k *work) latest(ctx context.Context) (string, error) {
	executions, err := k.machine.ListExecutions(ctx, &sfn.ListExecutionsInput{StateMachineArn: &k.w.machine})
	if err != nil {
		return "", err
	}
	for _, execution := range executions.Executions {
		if name := *execution.Name; !k.seen[name] {
			k.seen[name] = true
			return name, nil
		}
	}
	return "", errors.New("there is no new execution")
}

// end stops the worker, and counts its log with what it wrote for all jobs.
func (k *work) end() error {
	bytes, err := k.worker.stop()
	k.t.others[awscost.LogByte] += float64(bytes) * float64(k.t.runs) / float64(k.jobs)
	return errors.Join(err, k.w.want(context.Background(), 0))
}
