package cloud

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/job"
)

// StepFunctions runs the state machine of jobs: a message to the queue of the lane, a wait
// for its token, and the write of a failure. The writes are those of package dynamo, which
// the real definition is made of.
type StepFunctions struct {
	cloud *Cloud
	open  map[string]*execution
	names map[string]bool
	calls map[string]int
	// Started is called for each execution that begins; it may be nil.
	Started func()
	// MostOpen is the highest number of executions that were open at once, and Failed
	// counts those whose last write was refused.
	MostOpen, Failed int
	// Transitions counts state transitions.
	Transitions int
}

// execution is one that has not ended.
type execution struct{ job string }

// wholeJob is the error of a report that ends a job whatever its run (see package stepfn).
const wholeJob = "job"

func newStepFunctions(c *Cloud) *StepFunctions {
	return &StepFunctions{cloud: c, open: map[string]*execution{}, names: map[string]bool{}, calls: map[string]int{}}
}

// Open returns how many executions are open.
func (s *StepFunctions) Open() int { return len(s.open) }

func (s *StepFunctions) reset() {
	clear(s.calls)
	s.MostOpen, s.Failed, s.Transitions = len(s.open), 0, 0
}

func (s *StepFunctions) call(input any) (answer any, err error, known bool) {
	switch in := input.(type) {
	case *sfn.StartExecutionInput:
		s.calls["StartExecution"]++
		answer, err = s.start(in)
	case *sfn.SendTaskSuccessInput:
		s.calls["SendTaskSuccess"]++
		answer, err = &sfn.SendTaskSuccessOutput{}, s.succeed(*in.TaskToken)
	case *sfn.SendTaskFailureInput:
		s.calls["SendTaskFailure"]++
		answer, err = &sfn.SendTaskFailureOutput{}, s.fail(*in.TaskToken, *in.Error, *in.Cause)
	case *sfn.StopExecutionInput:
		s.calls["StopExecution"]++
		arn := *in.ExecutionArn
		answer = &sfn.StopExecutionOutput{}
		_, err = s.end("token-" + arn[strings.LastIndexByte(arn, ':')+1:])
		if err != nil {
			err = &types.ExecutionDoesNotExist{}
		}
	default:
		return nil, nil, false
	}
	return answer, err, true
}

func (s *StepFunctions) start(in *sfn.StartExecutionInput) (*sfn.StartExecutionOutput, error) {
	if s.names[*in.Name] {
		return nil, &types.ExecutionAlreadyExists{}
	}
	var about struct {
		Job, Account, Queue string
		Timeout             int
	}
	if err := json.Unmarshal([]byte(*in.Input), &about); err != nil {
		return nil, err
	}
	token := "token-" + about.Job
	body, err := json.Marshal(map[string]string{"job": about.Job, "token": token})
	if err != nil {
		return nil, err
	}
	s.names[*in.Name] = true
	s.open[token] = &execution{about.Job}
	s.MostOpen = max(s.MostOpen, len(s.open))
	s.Transitions += 2 // the start, and the state that waits
	s.cloud.SQS.Send(about.Queue, about.Account, string(body))
	s.cloud.clock.After(time.Duration(about.Timeout)*time.Second, func() { s.timeOut(token) })
	if s.Started != nil {
		s.Started()
	}
	return &sfn.StartExecutionOutput{ExecutionArn: in.Name, StartDate: aws.Time(s.cloud.clock.Now())}, nil
}

// end ends an execution.
func (s *StepFunctions) end(token string) (*execution, error) {
	e := s.open[token]
	if e == nil {
		return nil, &types.TaskTimedOut{}
	}
	delete(s.open, token)
	delete(s.names, e.job) // a day later, in truth: nobody starts a job again
	s.Transitions++
	return e, nil
}

func (s *StepFunctions) succeed(token string) error {
	_, err := s.end(token)
	return err
}

func (s *StepFunctions) fail(token, reason, cause string) error {
	e, err := s.end(token)
	if err != nil {
		return err
	}
	values := item{":failure": &dynamotypes.AttributeValueMemberS{Value: cause}}
	if reason == wholeJob {
		s.write(e.job, dynamo.FailJob(), values, 0)
		return nil
	}
	values[":nonce"] = &dynamotypes.AttributeValueMemberS{Value: reason}
	s.write(e.job, dynamo.FailRun(), values, 0)
	return nil
}

// timeOut fails the job of an execution that nobody has ended.
func (s *StepFunctions) timeOut(token string) {
	e, err := s.end(token)
	if err != nil {
		return
	}
	failure, err := json.Marshal(job.TimeoutFailure())
	if err != nil {
		panic(fmt.Sprintf("cloud: a timeout's failure: %v", err))
	}
	s.write(e.job, dynamo.FailJob(), item{":failure": &dynamotypes.AttributeValueMemberS{Value: string(failure)}}, 0)
}

// writeTries is how often the machine tries a write that is throttled or meets a transaction, in seconds that
// double.
const writeTries = 4

// write makes the write that ends a job.
func (s *StepFunctions) write(id string, end dynamo.JobEnd, values item, tried int) {
	for name, value := range end.Values {
		values[name] = value
	}
	now := s.cloud.clock.Now().UTC().Format(dynamo.JobTimeLayout)
	values[":now"] = &dynamotypes.AttributeValueMemberS{Value: now}
	s.Transitions++
	_, err, _ := s.cloud.DynamoDB.call(&dynamodb.UpdateItemInput{
		TableName: aws.String("jobs"),
		Key: item{
			"id":   &dynamotypes.AttributeValueMemberS{Value: id},
			"part": &dynamotypes.AttributeValueMemberS{Value: dynamo.RecordPart},
		},
		UpdateExpression: &end.Update, ConditionExpression: &end.Condition,
		ExpressionAttributeNames: end.Names, ExpressionAttributeValues: values,
	})
	_, busy := err.(*dynamotypes.ProvisionedThroughputExceededException)
	_, met := err.(*dynamotypes.TransactionConflictException)
	if (busy || met) && tried+1 < writeTries {
		s.cloud.clock.After(time.Second<<tried, func() { s.write(id, end, values, tried+1) })
		return
	}
	if err != nil {
		s.Failed++
	}
}
