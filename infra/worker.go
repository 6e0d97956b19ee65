package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapplicationautoscaling"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/jsii-runtime-go"
)

// jobsOfWorker is how many jobs of each lane a worker edits at once: half of its
// processors.
const jobsOfWorker = 1

// hasWorker says whether the deploy has workers, of whatever kind.
func (o options) hasWorker() bool { return o.Worker != "none" }

// workerCluster, workerService and workersMax are of the workers that take the
// jobs: those beside engine servers, or those with the preview engine.
func (o options) workerCluster() string {
	if o.GPU.On {
		return o.name("gpu")
	}
	return o.prefix()
}

func (o options) workerService() string {
	if o.GPU.On {
		return o.name("gpu-worker")
	}
	return o.name("worker")
}

func (o options) workersMax() int {
	if o.GPU.On {
		return o.GPU.Max
	}
	return o.WorkerMax
}

// newWorker runs the workers with the preview engine, from none: the function
// wake raises the first when work arrives, as metrics of queues lag by minutes;
// from then on their number follows the backlog, and back to none.
func (s *stack) newWorker() {
	if !s.hasWorker() || s.GPU.On {
		return
	}
	service := s.newService(container{
		name: "worker", program: "cmd/worker", image: s.WorkerImage,
		cpu: 2048, memory: 4096, disk: 40,
		environment: []string{"CUTROOM_JOBS_TABLE", "CUTROOM_BUCKET", "CUTROOM_VIDEO_QUEUE", "CUTROOM_IMAGE_QUEUE"},
		may:         s.workJobs(),
		// The worker hands its job back at once.
		grace: 30,
		// No number of tasks: it would put the service back to it with every
		// deploy, in the middle of jobs. ECS begins a service without one with 1.
	}, &awsecs.FargateServiceProps{
		MinHealthyPercent: jsii.Number(100), MaxHealthyPercent: jsii.Number(200),
	})
	service.AutoScaleTaskCount(&awsapplicationautoscaling.EnableScalingProps{
		MinCapacity: jsii.Number(0), MaxCapacity: jsii.Number(s.WorkerMax),
	})
	target := service.Node().FindChild(jsii.String("TaskCount")).Node().FindChild(jsii.String("Target")).(awsapplicationautoscaling.ScalableTarget)

	// Workers are added while jobs wait, and go together once nothing was waiting
	// or being worked on for a while: to take some of them earlier would stop
	// some that are busy.
	more := awsapplicationautoscaling.NewStepScalingAction(s.Stack, jsii.String("MoreWorkers"), &awsapplicationautoscaling.StepScalingActionProps{
		ScalingTarget: target, AdjustmentType: awsapplicationautoscaling.AdjustmentType_CHANGE_IN_CAPACITY,
		Cooldown: awscdk.Duration_Minutes(jsii.Number(1)),
	})
	more.AddAdjustment(&awsapplicationautoscaling.AdjustmentTier{LowerBound: jsii.Number(0), UpperBound: jsii.Number(9), Adjustment: jsii.Number(1)})
	more.AddAdjustment(&awsapplicationautoscaling.AdjustmentTier{LowerBound: jsii.Number(9), Adjustment: jsii.Number(3)})
	waiting := awscloudwatch.NewAlarm(s.Stack, jsii.String("JobsWait"), &awscloudwatch.AlarmProps{
		AlarmName: jsii.String(s.name("jobs-wait")), AlarmDescription: s.describeAlarm("jobs-wait", "Adds workers."),
		Metric: s.queued("Visible"), Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(2),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
	waiting.AddAlarmAction(awscloudwatchactions.NewApplicationScalingAction(more))

	s.stopWhenIdle(target, "nothing-to-do", 10)
}

// stopWhenIdle stops all workers when for some minutes nothing was waiting or
// being worked on.
func (s *stack) stopWhenIdle(target awsapplicationautoscaling.ScalableTarget, alarm string, minutes int) {
	none := awsapplicationautoscaling.NewStepScalingAction(s.Stack, jsii.String("NoWorkers"), &awsapplicationautoscaling.StepScalingActionProps{
		ScalingTarget: target, AdjustmentType: awsapplicationautoscaling.AdjustmentType_EXACT_CAPACITY,
	})
	none.AddAdjustment(&awsapplicationautoscaling.AdjustmentTier{UpperBound: jsii.Number(0), Adjustment: jsii.Number(0)})
	idle := awscloudwatch.NewAlarm(s.Stack, jsii.String("NothingToDo"), &awscloudwatch.AlarmProps{
		AlarmName: jsii.String(s.name(alarm)), AlarmDescription: s.describeAlarm("nothing-to-do", "Stops all workers."),
		Metric: s.queued("Visible", "NotVisible"), Threshold: jsii.Number(0), EvaluationPeriods: jsii.Number(minutes),
		ComparisonOperator: awscloudwatch.ComparisonOperator_LESS_THAN_OR_EQUAL_TO_THRESHOLD,
		// Queues that nobody used for hours have no metrics any more.
		TreatMissingData: awscloudwatch.TreatMissingData_BREACHING,
	})
	idle.AddAlarmAction(awscloudwatchactions.NewApplicationScalingAction(none))
}

// queued is how many messages of all lanes are in these states: Visible ones
// wait, NotVisible ones are being worked on.
func (s *stack) queued(states ...string) awscloudwatch.MathExpression {
	metrics := map[string]awscloudwatch.IMetric{}
	var terms []string
	for _, name := range []string{"video", "image"} {
		for _, state := range states {
			term := name + state
			terms = append(terms, term)
			metrics[term] = s.lanes[name].queue.Metric(jsii.String("ApproximateNumberOfMessages"+state), &awscloudwatch.MetricOptions{
				Statistic: jsii.String("Maximum"), Period: awscdk.Duration_Minutes(jsii.Number(1)),
			})
		}
	}
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(strings.Join(terms, " + ")), Label: jsii.String("messages"),
		UsingMetrics: &metrics, Period: awscdk.Duration_Minutes(jsii.Number(1)),
	})
}
