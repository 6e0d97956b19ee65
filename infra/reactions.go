package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// newReactions connects internal functions to the events that invoke them: the reaper function to jobs that ended
// without their worker, the wake function to new jobs, and the expiry function to deleted file records. (newBucket
// connects the arrived function.)
func (s *stack) newReactions() {
	reaper := s.functions["reaper"]
	for _, name := range []string{"video", "image"} {
		reaper.AddEventSource(
			awslambdaeventsources.NewSqsEventSource(s.lanes[name].dead, &awslambdaeventsources.SqsEventSourceProps{
				BatchSize: jsii.Number(10), ReportBatchItemFailures: jsii.Bool(true),
			}))
	}
	s.onExecutions("ExecutionsEnded", "executions-ended", "Executions that ended without recording an outcome",
		"reaper", s.lanes["video"].dead, "FAILED", "TIMED_OUT", "ABORTED")
	if s.functions["wake"] != nil {
		// If an event is lost, the function scale starts workers a minute later.
		s.onExecutions("ExecutionsBegun", "executions-begun", "Jobs for which workers may have to start", "wake", nil, "RUNNING")
	}

	// Only deletions matter. The filter drops all other changes, so they do not invoke the function and cost nothing.
	s.functions["expiry"].AddEventSource(
		awslambdaeventsources.NewDynamoEventSource(s.tables["files"], &awslambdaeventsources.DynamoEventSourceProps{
			StartingPosition: awslambda.StartingPosition_TRIM_HORIZON,
			BatchSize:        jsii.Number(100), MaxBatchingWindow: awscdk.Duration_Seconds(jsii.Number(30)),
			BisectBatchOnError: jsii.Bool(true), ReportBatchItemFailures: jsii.Bool(true),
			Filters: &[]*map[string]any{awslambda.FilterCriteria_Filter(&map[string]any{
				"eventName": awslambda.FilterRule_IsEqual(jsii.String("REMOVE")),
			})},
		}))
}

// onExecutions invokes a function when an execution enters one of the states. Undelivered events go to the queue lost.
func (s *stack) onExecutions(id, name, description, function string, lost awssqs.IQueue, states ...string) {
	awsevents.NewRule(s.Stack, jsii.String(id), &awsevents.RuleProps{
		RuleName: jsii.String(s.name(name)), Description: jsii.String(description),
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings("aws.states"),
			DetailType: jsii.Strings("Step Functions Execution Status Change"),
			Detail:     &map[string]any{"status": states, "stateMachineArn": []*string{s.stateMachineARN()}},
		},
		// A job ends within ten minutes of its creation, so older events are useless.
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(s.called(function), &awseventstargets.LambdaFunctionProps{
			RetryAttempts: jsii.Number(10), MaxEventAge: awscdk.Duration_Hours(jsii.Number(1)), DeadLetterQueue: lost,
		})},
	})
}
