package main

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/jsii-runtime-go"
)

// The preview workers' fleet.
const (
	// workerBacklog is how many jobs there may be for each worker before another is
	// started: it edits a video and an image at once.
	workerBacklog = 2 * jobsOfWorker
	// workerIdle is how long more workers than needed are kept, in minutes.
	workerIdle = 10
)

// newScaling starts the function scale every minute, also while nobody calls: it
// costs some cents a month, and finds work whose wakes were lost. No alarm of
// CloudWatch changes the number of workers: the metrics of queues lag by minutes, and
// its actions repeat for as long as an alarm lasts, which stopped workers that had
// just been woken.
func (s *stack) newScaling() {
	scale, ok := s.functions["scale"]
	if !ok {
		return
	}
	awsevents.NewRule(s.Stack, jsii.String("ScaleSchedule"), &awsevents.RuleProps{
		RuleName: jsii.String(s.name("scale")), Description: jsii.String("Sets how many workers there are to be"),
		Schedule: awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(1))),
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(scale, &awseventstargets.LambdaFunctionProps{
			// The next one comes in a minute.
			RetryAttempts: jsii.Number(0), MaxEventAge: awscdk.Duration_Minutes(jsii.Number(1)),
		})},
	})
}

// fleetRules returns the rules of the workers' number, as the function scale takes
// them.
func (s *stack) fleetRules() map[string]*string {
	least, most, backlog, idle := 0, s.WorkerMax, workerBacklog, workerIdle
	if s.GPU.On {
		least, most, backlog, idle = s.GPU.Min, s.GPU.Max, s.GPU.Backlog, s.GPU.Idle
	}
	number := func(n int) *string { return jsii.String(strconv.Itoa(n)) }
	return map[string]*string{
		"CUTROOM_WORKER_MIN": number(least), "CUTROOM_WORKER_MAX": number(most),
		"CUTROOM_WORKER_BACKLOG": number(backlog), "CUTROOM_WORKER_IDLE": number(idle),
	}
}
