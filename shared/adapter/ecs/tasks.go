package ecs

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"cutroom/shared/platform/awsclient"
)

type Task struct {
	// Cluster is a name or an ARN. Definition is an ARN.
	Cluster, Definition string
	// Container is the container whose exit ends the task. Command replaces its command.
	Container               string
	Command                 []string
	Subnets, SecurityGroups []string
	// PublicAddress assigns a public address, which is required in a subnet without a NAT gateway.
	PublicAddress bool
}

type TaskState struct {
	Stopped bool
	// ExitCode is nil if the container is still running or never ran.
	ExitCode *int
	// Reason says why the task or the container stopped. It may be empty.
	Reason string
}

// Tasks runs single tasks. A role needs ecs:RunTask on the task definition, iam:PassRole on the
// roles in it, and ecs:DescribeTasks and ecs:StopTask on the cluster's tasks.
type Tasks struct{ client *ecs.Client }

func NewTasks(config aws.Config) *Tasks {
	return &Tasks{ecs.NewFromConfig(config, func(o *ecs.Options) {
		o.Retryer = awsclient.Retryer()
		o.HTTPClient = awsclient.HTTPClient(config, 0)
	})}
}

// Run starts a task and returns its ARN. A retry with the same token returns the same task.
func (t *Tasks) Run(ctx context.Context, task Task, token string) (arn string, err error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	public := types.AssignPublicIpDisabled
	if task.PublicAddress {
		public = types.AssignPublicIpEnabled
	}
	ran, err := t.client.RunTask(ctx, &ecs.RunTaskInput{
		Cluster: &task.Cluster, TaskDefinition: &task.Definition, ClientToken: &token, Count: aws.Int32(1),
		LaunchType: types.LaunchTypeFargate,
		NetworkConfiguration: &types.NetworkConfiguration{AwsvpcConfiguration: &types.AwsVpcConfiguration{
			Subnets: task.Subnets, SecurityGroups: task.SecurityGroups, AssignPublicIp: public,
		}},
		Overrides: &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{
			{Name: &task.Container, Command: task.Command},
		}},
	})
	if err != nil {
		return "", fmt.Errorf("ecs: run a task: %w", err)
	}
	if len(ran.Failures) > 0 {
		return "", fmt.Errorf("ecs: run a task: %s", describe(ran.Failures[0]))
	}
	if len(ran.Tasks) != 1 || ran.Tasks[0].TaskArn == nil {
		return "", errors.New("ecs: run a task: ECS started no task and gave no reason")
	}
	return *ran.Tasks[0].TaskArn, nil
}

// State returns an error if ECS does not know the task. This can happen for some seconds after the
// task starts, and again from an hour after it ends.
func (t *Tasks) State(ctx context.Context, task Task, arn string) (TaskState, error) {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	found, err := t.client.DescribeTasks(ctx, &ecs.DescribeTasksInput{Cluster: &task.Cluster, Tasks: []string{arn}})
	if err != nil {
		return TaskState{}, fmt.Errorf("ecs: describe a task: %w", err)
	}
	if len(found.Failures) > 0 {
		return TaskState{}, fmt.Errorf("ecs: describe a task: %s", describe(found.Failures[0]))
	}
	if len(found.Tasks) != 1 {
		return TaskState{}, fmt.Errorf("ecs: describe a task: %s does not exist", arn)
	}
	return stateOf(found.Tasks[0], task.Container), nil
}

func stateOf(found types.Task, container string) TaskState {
	state := TaskState{Stopped: aws.ToString(found.LastStatus) == "STOPPED", Reason: aws.ToString(found.StoppedReason)}
	for _, c := range found.Containers {
		// If another container could not start, its reason explains why the task stopped.
		if reason := aws.ToString(c.Reason); reason != "" {
			state.Reason += " " + aws.ToString(c.Name) + ": " + reason
		}
		if aws.ToString(c.Name) == container && c.ExitCode != nil {
			state.ExitCode = aws.Int(int(*c.ExitCode))
		}
	}
	return state
}

func (t *Tasks) Stop(ctx context.Context, task Task, arn, why string) error {
	ctx, cancel := context.WithTimeout(ctx, awsclient.CallTime)
	defer cancel()
	_, err := t.client.StopTask(ctx, &ecs.StopTaskInput{Cluster: &task.Cluster, Task: &arn, Reason: &why})
	if err != nil {
		return fmt.Errorf("ecs: stop a task: %w", err)
	}
	return nil
}

func describe(f types.Failure) string {
	if detail := aws.ToString(f.Detail); detail != "" {
		return aws.ToString(f.Reason) + ": " + detail
	}
	return aws.ToString(f.Reason)
}
