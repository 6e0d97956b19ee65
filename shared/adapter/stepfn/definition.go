// Package stepfn lets AWS Step Functions see each job to its end. An execution
// sends the job to the queue of its lane with a task token, waits for a worker to
// report, and writes the end to the job's record.
package stepfn

import (
	"encoding/json"
	"fmt"

	"cutroom/shared/domain/job"
)

// The names of the states.
const (
	dispatchState = "Dispatch"
	completeState = "Complete"
	failRunState  = "FailRun"
	failJobState  = "FailJob"
	timeOutState  = "TimeOut"
)

// wholeJob is the error of a report that ends a job whatever its run. The error
// of any other failure is the nonce of the run, as a definition can compare an
// error but not take it apart; the cause is the failure in JSON.
const wholeJob = "job"

// input is what an execution is started with.
type input struct {
	Job     string `json:"job"`
	Account string `json:"account"`
	// Queue is the URL of the lane's queue.
	Queue string `json:"queue"`
	// Timeout is how long the job may be with its queue and workers, in seconds.
	Timeout int `json:"timeout"`
}

// output is what a worker reports of a run that succeeded.
type output struct {
	Nonce string `json:"nonce"`
	// Result is JSON, as the record keeps it.
	Result string `json:"result"`
}

// object is a part of a definition.
type object = map[string]any

// Definition returns the state machine of jobs in the Amazon States Language, for
// the table that holds the records (see shared/adapter/dynamo). The table may be a
// placeholder that is filled in later.
//
// Every execution passes two states, which AWS bills as four transitions, start
// and end included. A write that its condition refuses fails the execution: the
// job has then ended otherwise, or another run has it, and whoever hears of the
// failed execution looks (see job.Reaper).
func Definition(table string) (string, error) {
	timeout, err := json.Marshal(job.TimeoutFailure())
	if err != nil {
		return "", fmt.Errorf("stepfn: the timeout's failure: %w", err)
	}
	definition, err := json.MarshalIndent(object{
		"Comment": "Sends a job to its workers and writes its end.",
		"StartAt": dispatchState,
		"States": object{
			dispatchState: object{
				"Type":     "Task",
				"Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
				"Parameters": object{
					"QueueUrl.$":  "$.queue",
					"MessageBody": object{"job.$": "$.job", "token.$": "$$.Task.Token"},
					// On a standard queue the group is for fairness alone.
					"MessageGroupId.$": "$.account",
				},
				// A heartbeat would run while the message waits for a worker;
				// that one is alive is for the queue's visibility timeout.
				"TimeoutSecondsPath": "$.timeout",
				// Errors of SQS alone: those of a run must not send it again.
				"Retry": []object{retry("SQS.AmazonSQSException", "SQS.SqsException", "SQS.SdkClientException")},
				"Catch": []object{
					{"ErrorEquals": []string{"States.Timeout"}, "Next": timeOutState},
					{"ErrorEquals": []string{wholeJob}, "Next": failJobState},
					{"ErrorEquals": []string{"States.ALL"}, "Next": failRunState},
				},
				"Next": completeState,
			},
			completeState: write(table,
				"SET #status = :status, #progress = :full, #completed_at = :now, #result = :result",
				"#nonce = :nonce AND #status = :processing AND #deadline > :now",
				[]string{"status", "progress", "completed_at", "result", "nonce", "deadline"},
				object{
					":status": object{"S": job.Completed}, ":full": object{"N": "1"}, ":result": object{"S.$": "$.result"},
					":nonce": object{"S.$": "$.nonce"}, ":processing": object{"S": job.Processing},
				}),
			failRunState: write(table,
				"SET #status = :status, #failure = :failure, #completed_at = :now",
				"#nonce = :nonce AND #status = :processing",
				[]string{"status", "failure", "completed_at", "nonce"},
				object{
					":status": object{"S": job.Failed}, ":failure": object{"S.$": "$.Cause"},
					":nonce": object{"S.$": "$.Error"}, ":processing": object{"S": job.Processing},
				}),
			failJobState: write(table, failJob, isOpen, failJobAttributes, failJobValues(object{"S.$": "$.Cause"})),
			timeOutState: write(table, failJob, isOpen, failJobAttributes, failJobValues(object{"S": string(timeout)})),
		},
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("stepfn: the definition: %w", err)
	}
	return string(definition), nil
}

const (
	isOpen  = "#status IN (:pending, :processing)"
	failJob = "SET #status = :status, #failure = :failure, #completed_at = :now, #nonce = :none"
)

var failJobAttributes = []string{"status", "failure", "completed_at", "nonce"}

func failJobValues(failure object) object {
	return object{
		":status": object{"S": job.Failed}, ":failure": failure, ":none": object{"S": ""},
		":pending": object{"S": job.Pending}, ":processing": object{"S": job.Processing},
	}
}

// write is a state that updates the job's record and ends the execution. The
// time of the write is the value :now, in the form in which records have times.
func write(table, update, condition string, attributes []string, values object) object {
	names := object{}
	for _, attribute := range attributes {
		names["#"+attribute] = attribute
	}
	values[":now"] = object{"S.$": "$$.State.EnteredTime"}
	return object{
		"Type":     "Task",
		"Resource": "arn:aws:states:::dynamodb:updateItem",
		"Parameters": object{
			"TableName":                 table,
			"Key":                       object{"id": object{"S.$": "$$.Execution.Input.job"}, "part": object{"S": "record"}},
			"UpdateExpression":          update,
			"ConditionExpression":       condition,
			"ExpressionAttributeNames":  names,
			"ExpressionAttributeValues": values,
		},
		"Retry": []object{retry("DynamoDB.ProvisionedThroughputExceededException", "DynamoDB.RequestLimitExceeded",
			"DynamoDB.ThrottlingException", "DynamoDB.InternalServerErrorException", "DynamoDB.InternalServerError",
			"DynamoDB.SdkClientException")},
		"End": true,
	}
}

// retry tries again within 7 s: the dispatch ends 15 s before a job's deadline.
func retry(errors ...string) object {
	return object{"ErrorEquals": errors, "IntervalSeconds": 1, "BackoffRate": 2, "MaxAttempts": 3}
}
