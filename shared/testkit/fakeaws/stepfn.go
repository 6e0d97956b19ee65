package fakeaws

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

// StepFunctions runs the state machine for jobs: it sends a message to the queue, waits for the message's token,
// and writes a failure. Package dynamo defines the writes, as it does for the real state machine.
type StepFunctions struct {
	cloud *Cloud
	open  map[string]*execution
	names map[string]bool
	// Started, if not nil, is called for each execution that starts.
	Started func()
}

type execution struct {
	job  string
	open openEntry
}

// openEntry is a job's entry in the sets that hold its account's open jobs.
type openEntry struct {
	Set      string
	Elements []string
}

// wholeJob is the error of a report that ends the job, whichever run is current (see package stepfn).
const wholeJob = "job"

func newStepFunctions(c *Cloud) *StepFunctions {
	return &StepFunctions{cloud: c, open: map[string]*execution{}, names: map[string]bool{}}
}

func (s *StepFunctions) call(input any) (answer any, err error, known bool) {
	switch in := input.(type) {
	case *sfn.StartExecutionInput:
		answer, err = s.start(in)
	case *sfn.SendTaskSuccessInput:
		answer, err = &sfn.SendTaskSuccessOutput{}, s.succeed(*in.TaskToken)
	case *sfn.SendTaskFailureInput:
		answer, err = &sfn.SendTaskFailureOutput{}, s.report(*in.TaskToken, *in.Error, *in.Cause)
	case *sfn.StopExecutionInput:
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
		Open                openEntry
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
	s.open[token] = &execution{about.Job, about.Open}
	s.cloud.SQS.Send(about.Queue, about.Account, string(body))
	s.cloud.clock.After(time.Duration(about.Timeout)*time.Second, func() { s.timeOut(token) })
	if s.Started != nil {
		s.Started()
	}
	return &sfn.StartExecutionOutput{ExecutionArn: in.Name, StartDate: aws.Time(s.cloud.clock.Now())}, nil
}

func (s *StepFunctions) end(token string) (*execution, error) {
	e := s.open[token]
	if e == nil {
		return nil, &types.TaskTimedOut{}
	}
	delete(s.open, token)
	delete(s.names, e.job) // AWS keeps the name for a day, but no job is started twice
	return e, nil
}

func (s *StepFunctions) succeed(token string) error {
	_, err := s.end(token)
	return err
}

func (s *StepFunctions) report(token, reason, cause string) error {
	e, err := s.end(token)
	if err != nil {
		return err
	}
	values := item{":failure": &dynamotypes.AttributeValueMemberS{Value: cause}}
	if reason == wholeJob {
		s.fail(e, dynamo.FailJob(), values)
		return nil
	}
	values[":nonce"] = &dynamotypes.AttributeValueMemberS{Value: reason}
	s.fail(e, dynamo.FailRun(), values)
	return nil
}

func (s *StepFunctions) timeOut(token string) {
	e, err := s.end(token)
	if err != nil {
		return
	}
	failure, err := json.Marshal(job.TimeoutFailure())
	if err != nil {
		panic(fmt.Sprintf("fakeaws: encode the timeout failure: %v", err))
	}
	s.fail(e, dynamo.FailJob(), item{":failure": &dynamotypes.AttributeValueMemberS{Value: string(failure)}})
}

// writeTries is the maximum number of attempts for a write that is throttled or conflicts with a
// transaction. The wait between attempts, in seconds, doubles each time.
const writeTries = 4

// fail makes the write that ends a job, and then removes the job from its account's open jobs.
func (s *StepFunctions) fail(e *execution, end dynamo.JobEnd, values item) {
	for name, value := range end.Values {
		values[name] = value
	}
	now := s.cloud.clock.Now().UTC().Format(dynamo.JobTimeLayout)
	values[":now"] = &dynamotypes.AttributeValueMemberS{Value: now}
	s.write(&dynamodb.UpdateItemInput{
		TableName: aws.String("jobs"), Key: keyOf(e.job, dynamo.RecordPart),
		UpdateExpression: &end.Update, ConditionExpression: &end.Condition,
		ExpressionAttributeNames: end.Names, ExpressionAttributeValues: values,
	}, 0, func() {
		free := dynamo.FreeOpen()
		s.write(&dynamodb.UpdateItemInput{
			TableName: aws.String("jobs"), Key: keyOf(e.open.Set, dynamo.OpenPart),
			UpdateExpression: &free.Update, ExpressionAttributeNames: free.Names,
			ExpressionAttributeValues: item{":ended": &dynamotypes.AttributeValueMemberSS{Value: e.open.Elements}},
		}, 0, func() {})
	})
}

func keyOf(id, part string) item {
	return item{
		"id": &dynamotypes.AttributeValueMemberS{Value: id}, "part": &dynamotypes.AttributeValueMemberS{Value: part},
	}
}

// write performs a state's write, and then calls the function next.
func (s *StepFunctions) write(in *dynamodb.UpdateItemInput, tried int, next func()) {
	_, err, _ := s.cloud.DynamoDB.call(in)
	_, busy := err.(*dynamotypes.ProvisionedThroughputExceededException)
	_, met := err.(*dynamotypes.TransactionConflictException)
	switch {
	case (busy || met) && tried+1 < writeTries:
		s.cloud.clock.After(time.Second<<tried, func() { s.write(in, tried+1, next) })
	case err == nil:
		next()
	}
}
