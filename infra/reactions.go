package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// newReactions connects internal functions to the events that invoke them: the reaper function to jobs that ended
// without their worker, the wake function to new jobs, the expiry function to deleted file records, and the steps
// function to a schedule. (newBucket connects the arrived function.)
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

	// The steps function runs even while idle, which costs a few cents a month. It finds batches that wait until a given
	// time, and batches whose process has died. Polling a queue would cost more.
	s.onSchedule("StepsSchedule", "Works on waiting batches", "steps", 5)

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
	// A job ends within ten minutes of its creation, so older events are useless.
	s.invoke(function, 10, 60, lost, id, &awsevents.RuleProps{
		RuleName: jsii.String(s.name(name)), Description: jsii.String(description),
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings("aws.states"),
			DetailType: jsii.Strings("Step Functions Execution Status Change"),
			Detail:     &map[string]any{"status": states, "stateMachineArn": []*string{s.stateMachineARN()}},
		},
	})
}

// onSchedule invokes a function periodically. Failed invocations are not retried, because the next one follows.
func (s *stack) onSchedule(id, description, function string, minutes float64) {
	s.invoke(function, 0, minutes, nil, id, &awsevents.RuleProps{
		RuleName: jsii.String(s.name(function)), Description: jsii.String(description),
		Schedule: awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(minutes))),
	})
}

// invoke creates a rule that invokes a function. Undelivered events go to the queue lost, unless it is nil. Package
// awseventstargets does the same, but with all its imports it takes 8 s to compile.
func (s *stack) invoke(function string, retries, minutes float64, lost awssqs.IQueue, id string, props *awsevents.RuleProps) {
	called, rule := s.called(function), awsevents.NewRule(s.Stack, jsii.String(id), props)
	events := awsiam.NewServicePrincipal(jsii.String("events.amazonaws.com"), nil)
	called.AddPermission(jsii.String("AllowEventRule"+*awscdk.Names_NodeUniqueId(called.Node())),
		&awslambda.Permission{Scope: rule, Principal: events, SourceArn: rule.RuleArn()})
	target := awsevents.CfnRule_TargetProperty{
		Id: jsii.String("Target0"), Arn: called.FunctionArn(),
		RetryPolicy: awsevents.CfnRule_RetryPolicyProperty{
			MaximumRetryAttempts: jsii.Number(retries), MaximumEventAgeInSeconds: jsii.Number(minutes * 60),
		},
	}
	if lost != nil {
		target.DeadLetterConfig = awsevents.CfnRule_DeadLetterConfigProperty{Arn: lost.QueueArn()}
		lost.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Sid: jsii.String("AllowEventRule" + *awscdk.Names_NodeUniqueId(rule.Node())), Principals: &[]awsiam.IPrincipal{events},
			Actions: jsii.Strings("sqs:SendMessage"), Resources: &[]*string{lost.QueueArn()},
			Conditions: &map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": rule.RuleArn()}},
		}))
	}
	rule.Node().DefaultChild().(awsevents.CfnRule).SetTargets(&[]any{target})
}
