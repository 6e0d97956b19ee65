package main

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsecs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"cutroom/functions"
)

const (
	// smokeTimeout is the maximum run time of the smoke function, in seconds. It has to be long,
	// because pulling an engine image of many GB takes minutes.
	smokeTimeout = 900
	// smokeAnswer is how long CloudFormation waits for the function's response, in minutes. The default is an hour.
	smokeAnswer = 20
)

type smokeTask struct {
	definition          awsecs.TaskDefinition
	container, logGroup string
	subnets             *awsec2.SubnetSelection
	group               awsec2.ISecurityGroup
	// public gives the task a public address.
	public   bool
	function string
	// needs lists the task's dependencies that its definition does not refer to.
	needs []constructs.IDependable
}

// trySmoke adds a custom resource that runs the task once whenever its definition changes, and fails the deployment
// unless it succeeds. Users of the task must depend on the resource. trySmoke returns nil if the options turn it off.
//
// At first no worker runs, so a deployment of a broken image would otherwise succeed, and its first job would fail.
func (s *stack) trySmoke(where *containers, task smokeTask) awscdk.CustomResource {
	if !s.Smoke {
		return nil
	}
	f, _ := functions.Find("smoke")
	function := s.newFunction(function{
		Function: f, called: task.function, memory: 256, timeout: smokeTimeout, may: s.tryTasks(task),
	})
	properties := map[string]any{
		"Cluster": where.cluster.ClusterName(), "TaskDefinition": task.definition.TaskDefinitionArn(),
		"Container": task.container, "LogGroup": task.logGroup, "PublicAddress": strconv.FormatBool(task.public),
		"Subnets":        where.vpc.SelectSubnets(task.subnets).SubnetIds,
		"SecurityGroups": []*string{task.group.SecurityGroupId()},
	}
	smoke := awscdk.NewCustomResource(s.Stack, jsii.String("Smoke"), &awscdk.CustomResourceProps{
		ResourceType: jsii.String("Custom::Smoke"), ServiceToken: function.FunctionArn(), Properties: &properties,
		ServiceTimeout: awscdk.Duration_Minutes(jsii.Number(smokeAnswer)),
	})
	// The task needs its permissions and a route to AWS.
	smoke.Node().AddDependency(task.definition.TaskRole(), task.definition.ExecutionRole(), where.vpc)
	smoke.Node().AddDependency(task.needs...)
	return smoke
}

func (s *stack) tryTasks(task smokeTask) []permission {
	cluster := s.arn("ecs", "cluster/"+s.workerCluster())
	return []permission{
		{
			actions:   []string{"ecs:RunTask"},
			resources: []*string{s.arn("ecs", "task-definition/"+*task.definition.Family()+":*")},
			when:      map[string]any{"ArnEquals": map[string]any{"ecs:cluster": cluster}},
			why:       "Each deploy registers a new revision of the task definition.",
		},
		{
			actions: []string{"ecs:DescribeTasks", "ecs:StopTask"}, why: whyAnyTask,
			resources: []*string{s.arn("ecs", "task/"+s.workerCluster()+"/*")},
		},
		{
			actions:   []string{"iam:PassRole"},
			resources: []*string{task.definition.TaskRole().RoleArn(), task.definition.ExecutionRole().RoleArn()},
			when:      map[string]any{"StringEquals": map[string]any{"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
		},
		{
			actions:   []string{"cloudformation:DescribeStacks"},
			resources: []*string{s.arn("cloudformation", "stack/"+*s.StackName()+"/*")},
			why:       "CloudFormation appends an id to the name of the stack.",
		},
	}
}
