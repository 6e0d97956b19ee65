// Package stepfn runs each job as an execution of AWS Step Functions. An execution sends the job
// and a task token to the lane's queue and waits for a worker's report. The worker writes the
// result to the job's record. If the job ends without a result, the execution writes the outcome.
package stepfn

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/job"
)

const (
	dispatchState = "Dispatch"
	failRunState  = "FailRun"
	failJobState  = "FailJob"
	lateState     = "Late"
	// unstartedState fails a job that had to start earlier. If it has started, restState waits for its deadline.
	unstartedState = "StartTimeOut"
	restState      = "Rest"
	timeOutState   = "TimeOut"
	freeOpenState  = "FreeOpen"
)

// wholeJob is the error in a report that ends the job regardless of its current run. In other reports the error is
// the run's nonce, because a definition can compare an error but not parse it. The cause is the failure in JSON.
const wholeJob = "job"

type input struct {
	Job     string `json:"job"`
	Account string `json:"account"`
	Queue   string `json:"queue"`
	Timeout int    `json:"timeout"` // for waiting and running, in seconds
	Rest    int    `json:"rest"`    // how much longer a job may run that has started before the timeout, in seconds
	Open    open   `json:"open"`
}

type open struct {
	Set      string   `json:"set"`
	Elements []string `json:"elements"`
}

type object = map[string]any

// Definition returns the state machine for jobs. partition is an AWS partition such as "aws", and
// table holds the records. Both may be placeholders.
//
// The execution of a completed job enters only one state, because the worker writes the result
// before it reports. Other executions enter two more states: one writes the failure, the other
// removes the job from its account's open jobs. A rejected write fails the execution: the job has
// already ended, or another run has it. Then job.Reaper checks the job.
func Definition(partition, table string) (string, error) {
	timeout, err := json.Marshal(job.TimeoutFailure())
	unstarted, errUnstarted := json.Marshal(job.StartTimeoutFailure())
	if err := errors.Join(err, errUnstarted); err != nil {
		return "", fmt.Errorf("stepfn: encode the timeout failures: %w", err)
	}
	definition, err := json.MarshalIndent(object{
		"Comment": "Sends a job to its workers and records its end. The workers record results.",
		"StartAt": dispatchState,
		"States": object{
			dispatchState: object{
				"Type":     "Task",
				"Resource": "arn:" + partition + ":states:::sqs:sendMessage.waitForTaskToken",
				"Parameters": object{
					"QueueUrl.$":  "$.queue",
					"MessageBody": object{"job.$": "$.job", "token.$": "$$.Task.Token"},
					// On a standard queue, the group affects only fairness.
					"MessageGroupId.$": "$.account",
				},
				// A heartbeat timeout cannot be used, because it would start while the message
				// waits for a worker. The queue's visibility timeout detects dead workers.
				"TimeoutSecondsPath": "$.timeout",
				// Retry only SQS errors, because a failed run must not send the message again.
				"Retry": []object{retry("SQS.AmazonSQSException", "SQS.SqsException", "SQS.SdkClientException")},
				"Catch": []object{
					{"ErrorEquals": []string{"States.Timeout"}, "ResultPath": "$.error", "Next": lateState},
					{"ErrorEquals": []string{wholeJob}, "Next": failJobState},
					{"ErrorEquals": []string{"States.ALL"}, "Next": failRunState},
				},
				"End": true,
			},
			failRunState: fail(partition, table, dynamo.FailRun(), object{
				":nonce": object{"S.$": "$.Error"}, ":failure": object{"S.$": "$.Cause"},
			}),
			failJobState: fail(partition, table, dynamo.FailJob(), object{":failure": object{"S.$": "$.Cause"}}),
			lateState: object{
				"Type": "Choice",
				"Choices": []object{{"And": []object{
					{"Variable": "$.rest", "IsPresent": true}, {"Variable": "$.rest", "NumericGreaterThan": 0},
				}, "Next": unstartedState}},
				"Default": timeOutState,
			},
			unstartedState: with(
				fail(partition, table, dynamo.FailUnstarted(), object{":failure": object{"S": string(unstarted)}}),
				"Catch", []object{{"ErrorEquals": []string{"States.ALL"}, "ResultPath": "$.error", "Next": restState}},
			),
			restState:    object{"Type": "Wait", "SecondsPath": "$.rest", "Next": timeOutState},
			timeOutState: fail(partition, table, dynamo.FailJob(), object{":failure": object{"S": string(timeout)}}),
			freeOpenState: with(write(partition, table, dynamo.FreeOpen(), object{
				"id":   object{"S.$": "$$.Execution.Input.open.set"},
				"part": object{"S": dynamo.OpenPart},
			}, object{":ended": object{"SS.$": "$$.Execution.Input.open.elements"}}), "End", true),
		},
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("stepfn: encode the definition: %w", err)
	}
	return string(definition), nil
}

// fail returns a state that makes the update described by the parameter `end`. The update also sets the given values
// and the time at which the state was entered.
func fail(partition, table string, end dynamo.JobEnd, values object) object {
	values[":now"] = object{"S.$": "$$.State.EnteredTime"}
	key := object{"id": object{"S.$": "$$.Execution.Input.job"}, "part": object{"S": dynamo.RecordPart}}
	return with(write(partition, table, end, key, values), "Next", freeOpenState)
}

func write(partition, table string, end dynamo.JobEnd, key, values object) object {
	for name, value := range end.Values {
		switch value := value.(type) {
		case *types.AttributeValueMemberS:
			values[name] = object{"S": value.Value}
		case *types.AttributeValueMemberN:
			values[name] = object{"N": value.Value}
		}
	}
	parameters := object{
		"TableName": table, "Key": key, "UpdateExpression": end.Update,
		"ExpressionAttributeNames": end.Names, "ExpressionAttributeValues": values,
	}
	if end.Condition != "" {
		parameters["ConditionExpression"] = end.Condition
	}
	return object{
		"Type":       "Task",
		"Resource":   "arn:" + partition + ":states:::dynamodb:updateItem",
		"Parameters": parameters,
		"Retry": []object{retry("DynamoDB.ProvisionedThroughputExceededException", "DynamoDB.RequestLimitExceeded",
			"DynamoDB.ThrottlingException", "DynamoDB.InternalServerErrorException", "DynamoDB.InternalServerError",
			"DynamoDB.SdkClientException", "DynamoDB.TransactionConflictException")},
	}
}

func with(state object, name string, value any) object {
	state[name] = value
	return state
}

// retry retries for at most 7 s, because the dispatch times out only 15 s before a job's deadline.
func retry(errors ...string) object {
	return object{"ErrorEquals": errors, "IntervalSeconds": 1, "BackoffRate": 2, "MaxAttempts": 3}
}
