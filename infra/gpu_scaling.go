package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapplicationautoscaling"
	"github.com/aws/jsii-runtime-go"
)

// scaleByBacklog keeps the number of tasks in proportion to the jobs that wait or
// are being worked on. The first task is raised by the function wake, as metrics
// of queues lag by minutes; the last one goes after a while without a job. A task
// that works on a job protects itself, so that fewer tasks never means a lost run.
func (s *gpuStack) scaleByBacklog() {
	s.service.AutoScaleTaskCount(&awsapplicationautoscaling.EnableScalingProps{
		MinCapacity: jsii.Number(s.GPU.Min), MaxCapacity: jsii.Number(s.GPU.Max),
	})
	target := s.service.Node().FindChild(jsii.String("TaskCount")).Node().FindChild(jsii.String("Target")).(awsapplicationautoscaling.ScalableTarget)
	awsapplicationautoscaling.NewCfnScalingPolicy(s.Stack, jsii.String("BacklogPolicy"), &awsapplicationautoscaling.CfnScalingPolicyProps{
		PolicyName: jsii.String(s.name("gpu-backlog")), PolicyType: jsii.String("TargetTrackingScaling"), ScalingTargetId: target.ScalableTargetId(),
		TargetTrackingScalingPolicyConfiguration: &awsapplicationautoscaling.CfnScalingPolicy_TargetTrackingScalingPolicyConfigurationProperty{
			TargetValue: jsii.Number(s.GPU.Backlog),
			// An instance and its task take minutes to be of use.
			ScaleOutCooldown: jsii.Number(instanceWarmup), ScaleInCooldown: jsii.Number(instanceWarmup),
			CustomizedMetricSpecification: &awsapplicationautoscaling.CfnScalingPolicy_CustomizedMetricSpecificationProperty{
				Metrics: s.backlog(),
			},
		},
	})
	if s.GPU.Min == 0 {
		s.stopWhenIdle(target, "gpu-nothing-to-do", s.GPU.Idle)
	}
}

// backlog is the jobs for each task that runs: those that wait, and those that are
// being worked on, as without these all tasks would go while they are busy.
func (s *gpuStack) backlog() []any {
	type query = awsapplicationautoscaling.CfnScalingPolicy_TargetTrackingMetricDataQueryProperty
	var queries []any
	add := func(id, namespace, name, statistic string, dimensions map[string]*string) {
		var list []any
		for _, key := range sortedKeys(dimensions) {
			list = append(list, &awsapplicationautoscaling.CfnScalingPolicy_TargetTrackingMetricDimensionProperty{Name: jsii.String(key), Value: dimensions[key]})
		}
		queries = append(queries, &query{
			Id: jsii.String(id), ReturnData: jsii.Bool(false),
			MetricStat: &awsapplicationautoscaling.CfnScalingPolicy_TargetTrackingMetricStatProperty{
				Stat: jsii.String(statistic),
				Metric: &awsapplicationautoscaling.CfnScalingPolicy_TargetTrackingMetricProperty{
					Namespace: jsii.String(namespace), MetricName: jsii.String(name), Dimensions: list,
				},
			},
		})
	}
	var jobs []string
	for _, lane := range []string{"video", "image"} {
		for _, state := range []string{"Visible", "NotVisible"} {
			id := lane + state
			add(id, "AWS/SQS", "ApproximateNumberOfMessages"+state, "Maximum", map[string]*string{"QueueName": jsii.String(s.name(lane))})
			jobs = append(jobs, "FILL("+id+", 0)")
		}
	}
	add("running", "ECS/ContainerInsights", "RunningTaskCount", "Average", map[string]*string{
		"ClusterName": jsii.String(s.workerCluster()), "ServiceName": jsii.String(s.workerService()),
	})
	tasks := "FILL(running, 0)"
	return append(queries, &query{
		Id: jsii.String("backlog"), Label: jsii.String("jobs for each task"), ReturnData: jsii.Bool(true),
		Expression: jsii.String("(" + strings.Join(jobs, " + ") + ") / IF(" + tasks + " > 0, " + tasks + ", 1)"),
	})
}
