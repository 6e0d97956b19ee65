package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/credential"
)

type deploy struct {
	stage, mediaURL, inferenceURL, realtimeURL string
	// noWorker means that the stage has no workers.
	noWorker bool
}

func (d deploy) name(part string) string { return "cutroom-" + d.stage + "-" + part }

func find(ctx context.Context, settings aws.Config, stage string) (deploy, error) {
	stacks, err := cloudformation.NewFromConfig(settings).DescribeStacks(ctx,
		&cloudformation.DescribeStacksInput{StackName: aws.String("cutroom-" + stage)})
	if isCode(err, "ValidationError") || err == nil && len(stacks.Stacks) == 0 {
		return deploy{}, fmt.Errorf("no deployment of the stage %q exists in the region %s", stage, settings.Region)
	}
	if err != nil {
		return deploy{}, fmt.Errorf("find the deployment: %w", err)
	}
	outputs := map[string]string{}
	for _, output := range stacks.Stacks[0].Outputs {
		outputs[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	return deploy{
		stage: stage, mediaURL: outputs["MediaUrl"], inferenceURL: outputs["InferenceUrl"],
		realtimeURL: outputs["RealtimeUrl"],
	}, nil
}

func isCode(err error, code string) bool {
	var failure smithy.APIError
	return errors.As(err, &failure) && failure.ErrorCode() == code
}

type awsCloud struct {
	deploy
	tables   *dynamodb.Client
	queues   *sqs.Client
	services *ecs.Client
	alarms   *cloudwatch.Client
}

func newCloud(settings aws.Config, d deploy) *awsCloud {
	return &awsCloud{d, dynamo.NewClient(settings), sqs.NewFromConfig(settings), ecs.NewFromConfig(settings),
		cloudwatch.NewFromConfig(settings)}
}

func (c *awsCloud) workers(ctx context.Context) (wanted, running int, err error) {
	clusters := map[string]string{"cutroom-" + c.stage: c.name("worker"), c.name("gpu"): c.name("gpu-worker")}
	for cluster, service := range clusters {
		found, err := c.services.DescribeServices(ctx,
			&ecs.DescribeServicesInput{Cluster: aws.String(cluster), Services: []string{service}})
		if isCode(err, "ClusterNotFoundException") {
			continue
		}
		if err != nil {
			return 0, 0, fmt.Errorf("read the service %s: %w", service, err)
		}
		for _, s := range found.Services {
			if aws.ToString(s.Status) == "ACTIVE" {
				return int(s.DesiredCount), int(s.RunningCount), nil
			}
		}
	}
	return 0, 0, errors.New("the deployment has no worker service")
}

func (c *awsCloud) deadLetters(ctx context.Context) error {
	var faults []error
	for _, queue := range []string{"video-dead-letters", "image-dead-letters", "webhook-dead-letters"} {
		found, err := c.queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(c.name(queue))})
		if err != nil {
			return fmt.Errorf("find the queue %s: %w", c.name(queue), err)
		}
		got, err := c.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: found.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll}})
		if err != nil {
			return fmt.Errorf("read the queue %s: %w", c.name(queue), err)
		}
		messages := 0
		for name, text := range got.Attributes {
			// Count visible, delayed and in-flight messages, because a message that no function can process is nearly
			// always in flight.
			if n, err := strconv.Atoi(text); err == nil && strings.HasPrefix(name, "ApproximateNumberOfMessages") {
				messages += n
			}
		}
		if messages > 0 {
			faults = append(faults, fmt.Errorf("%s has %d messages", queue, messages))
		}
	}
	return errors.Join(faults...)
}

func (c *awsCloud) tablesAndAlarms(ctx context.Context) error {
	var faults []error
	for _, table := range dynamo.Tables() {
		if table.TTL == "" {
			continue
		}
		name := dynamo.TableName(c.stage, table.Name)
		got, err := c.tables.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(name)})
		if err != nil {
			return fmt.Errorf("read the table %s: %w", name, err)
		}
		set := got.TimeToLiveDescription
		if set == nil || aws.ToString(set.AttributeName) != table.TTL ||
			set.TimeToLiveStatus != types.TimeToLiveStatusEnabled && set.TimeToLiveStatus != types.TimeToLiveStatusEnabling {
			faults = append(faults, fmt.Errorf("TTL is not enabled on the attribute %s of table %s", table.TTL, name))
		}
	}
	states := map[string]cwtypes.StateValue{}
	pages := cloudwatch.NewDescribeAlarmsPaginator(c.alarms,
		&cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: aws.String(c.name(""))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read the alarms: %w", err)
		}
		for _, alarm := range page.MetricAlarms {
			name := strings.TrimPrefix(aws.ToString(alarm.AlarmName), c.name(""))
			if states[name] = alarm.StateValue; alarm.StateValue == cwtypes.StateValueAlarm {
				faults = append(faults, fmt.Errorf("the alarm %s fired: see %s#%s", name, runbookPage, name))
			}
		}
	}
	for _, name := range alarmNames {
		if c.noWorker && name == "image-refusals" {
			continue
		}
		if states[name] == "" && len(states) > 0 { // with -c watch=off there are no alarms
			faults = append(faults, fmt.Errorf("the alarm %s is missing", name))
		}
	}
	return errors.Join(faults...)
}

var alarmNames = []string{
	"media-errors", "inference-errors", "failed-executions", "dead-letters", "video-queue-age", "image-queue-age",
	"image-refusals", "internal-errors", "webhook-dead-letters", "function-throttles", "late-events",
}

func (c *awsCloud) forget(ctx context.Context, key credential.Key) error {
	_, err := c.tables.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:           aws.String(dynamo.TableName(c.stage, "credentials")),
		Key:                 map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key.ID}},
		ConditionExpression: aws.String("attribute_not_exists(id) OR attribute_exists(revoked_at)"),
	})
	if err != nil {
		return fmt.Errorf("delete the key: %w", err)
	}
	return nil
}
