package stepfn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/awsclient"
)

// timeToEnd is the time between a dispatch's timeout and the job's deadline. The execution uses it
// to record the timeout.
const timeToEnd = 15 * time.Second

// Machine starts an execution for each job, and stops the execution if something else ends the job.
type Machine struct {
	client *sfn.Client
	arn    string
	queues map[job.Lane]string
}

func NewMachine(config aws.Config, arn string, queues map[job.Lane]string) *Machine {
	return &Machine{newClient(config), arn, queues}
}

func newClient(config aws.Config) *sfn.Client {
	return sfn.NewFromConfig(config, func(o *sfn.Options) {
		o.Retryer = awsclient.Retryer()
		o.HTTPClient = awsclient.HTTPClient(config, 0)
	})
}

// Dispatch starts the execution of a job. Its name and input depend only on the job's record, so Step Functions
// recognizes a repeated start. If the execution already exists or has ended, Dispatch succeeds.
func (m *Machine) Dispatch(ctx context.Context, j job.Job, at dynamo.OpenEntry) error {
	queue, ok := m.queues[j.Lane]
	if !ok {
		return fault.New(fault.Internal, "The lane %q has no queue.", j.Lane)
	}
	most := j.RunDeadline().Sub(j.CreatedAt) - timeToEnd
	timeout := min(j.Deadline.Sub(j.CreatedAt), most)
	body, err := json.Marshal(input{
		Job: j.ID, Account: j.Account, Queue: queue,
		Timeout: int(timeout / time.Second), Rest: int((most - timeout) / time.Second),
		Open: open{Set: at.Set, Elements: []string{at.Element}},
	})
	if err != nil {
		return fault.Wrap(err, fault.Internal, "The job cannot be queued.")
	}
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err = m.client.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &m.arn, Name: &j.ID, Input: aws.String(string(body)), TraceHeader: traceHeader(ctx),
	})
	var exists *types.ExecutionAlreadyExists
	switch {
	case err == nil, errors.As(err, &exists):
		return nil
	case isThrottled(err):
		busy := fault.Wrap(err, fault.Limited, "Too many jobs are arriving. Try again later.")
		busy.RetryAfter = time.Second
		return busy
	case isRefused(err):
		return fault.Wrap(err, fault.Internal, "The job cannot be queued.")
	}
	return fmt.Errorf("stepfn: start the execution of job %s: %w", j.ID, err)
}

// Stop stops the execution of an ended job, so that it does not run until its timeout. A missing or
// ended execution is not an error.
func (m *Machine) Stop(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	execution := strings.Replace(m.arn, ":stateMachine:", ":execution:", 1) + ":" + id
	_, err := m.client.StopExecution(ctx, &sfn.StopExecutionInput{
		ExecutionArn: &execution, Error: aws.String(string(job.Cancelled)),
	})
	var (
		unknown *types.ExecutionDoesNotExist
		// The local AWS returns this error if the execution is not running.
		ended *types.ValidationException
	)
	if err == nil || errors.As(err, &unknown) || errors.As(err, &ended) {
		return nil
	}
	return fmt.Errorf("stepfn: stop the execution of job %s: %w", id, err)
}

func isThrottled(err error) bool {
	var many *types.ExecutionLimitExceeded
	var response *awshttp.ResponseError
	return errors.As(err, &many) || awsclient.IsThrottle(err) ||
		errors.As(err, &response) && response.HTTPStatusCode() == http.StatusTooManyRequests
}

func isRefused(err error) bool {
	var response *awshttp.ResponseError
	return errors.As(err, &response) && response.HTTPStatusCode() >= 400 && response.HTTPStatusCode() < 500
}
