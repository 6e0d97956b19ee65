package deploycheck

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/credential"
)

// prefix begins the names of all that a stage has.
func prefix(stage string) string { return "cutroom-" + stage }

// Find returns where the deploy of a stage is, by the outputs of its stack.
//
// Errors: there is no such deploy; AWS's.
func Find(ctx context.Context, settings aws.Config, stage string) (Deploy, error) {
	stacks, err := cloudformation.NewFromConfig(settings).DescribeStacks(ctx,
		&cloudformation.DescribeStacksInput{StackName: aws.String(prefix(stage))})
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorCode() == "ValidationError" || err == nil && len(stacks.Stacks) == 0 {
		return Deploy{}, fmt.Errorf("there is no deploy of the stage %q in this account and region (%s)", stage,
			settings.Region)
	}
	if err != nil {
		return Deploy{}, fmt.Errorf("find the deploy: %w", err)
	}
	d := Deploy{Stage: stage}
	for _, output := range stacks.Stacks[0].Outputs {
		switch value := aws.ToString(output.OutputValue); aws.ToString(output.OutputKey) {
		case "MediaUrl":
			d.MediaURL = value
		case "InferenceUrl":
			d.InferenceURL = value
		case "RealtimeUrl":
			d.RealtimeURL = value
		case "StateMachineArn":
			d.StateMachine = value
		case "VideoQueueUrl":
			d.VideoQueue = value
		case "ImageQueueUrl":
			d.ImageQueue = value
		case "BucketName":
			d.Bucket = value
		}
	}
	return d, nil
}

// awsCloud is a Cloud: a deploy in an account of AWS.
type awsCloud struct {
	Deploy
	settings aws.Config
	tables   *dynamodb.Client
	queues   *sqs.Client
	services *ecs.Client
	alarms   *cloudwatch.Client
}

// NewCloud returns what a deployer's credentials show of a deploy.
func NewCloud(settings aws.Config, deploy Deploy) Cloud {
	return &awsCloud{
		Deploy: deploy, settings: settings, tables: dynamo.NewClient(settings), queues: sqs.NewFromConfig(settings),
		services: ecs.NewFromConfig(settings), alarms: cloudwatch.NewFromConfig(settings),
	}
}

func (c *awsCloud) name(what string) string { return prefix(c.Stage) + "-" + what }

// Workers looks at the preview workers, or at those with GPUs where there are none.
func (c *awsCloud) Workers(ctx context.Context) (wanted, running int, err error) {
	services := map[string]string{prefix(c.Stage): c.name("worker"), c.name("gpu"): c.name("gpu-worker")}
	for cluster, service := range services {
		found, err := c.services.DescribeServices(ctx,
			&ecs.DescribeServicesInput{Cluster: aws.String(cluster), Services: []string{service}})
		var refused smithy.APIError
		if errors.As(err, &refused) && refused.ErrorCode() == "ClusterNotFoundException" {
			continue
		}
		if err != nil {
			return 0, 0, fmt.Errorf("look at the workers: %w", err)
		}
		for _, s := range found.Services {
			if aws.ToString(s.Status) == "ACTIVE" {
				return int(s.DesiredCount), int(s.RunningCount), nil
			}
		}
	}
	return 0, 0, errors.New("the deploy has no service of workers")
}

// waiting are the attributes that together count the messages of a queue. One that no
// function can take is visible for a moment every few minutes, and in flight else.
var waiting = []sqstypes.QueueAttributeName{
	sqstypes.QueueAttributeNameApproximateNumberOfMessages,
	sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	sqstypes.QueueAttributeNameApproximateNumberOfMessagesDelayed,
}

// DeadLetters counts the messages of the three dead-letter queues, whether they can be
// received now or not.
func (c *awsCloud) DeadLetters(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for _, what := range []string{"video-dead-letters", "image-dead-letters", "webhook-dead-letters"} {
		found, err := c.queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(c.name(what))})
		if err != nil {
			return nil, fmt.Errorf("find the queue %s: %w", c.name(what), err)
		}
		got, err := c.queues.GetQueueAttributes(ctx,
			&sqs.GetQueueAttributesInput{QueueUrl: found.QueueUrl, AttributeNames: waiting})
		if err != nil {
			return nil, fmt.Errorf("look at the queue %s: %w", c.name(what), err)
		}
		for _, attribute := range waiting {
			messages, err := strconv.Atoi(got.Attributes[string(attribute)])
			if err != nil {
				return nil, fmt.Errorf("the queue %s has %q messages (%s)", c.name(what),
					got.Attributes[string(attribute)], attribute)
			}
			counts[what] += messages
		}
	}
	return counts, nil
}

// Lifetimes looks at the setting of each table.
func (c *awsCloud) Lifetimes(ctx context.Context) (wrong []string, err error) {
	for _, table := range dynamo.Tables() {
		if table.TTL == "" {
			continue
		}
		name := dynamo.TableName(c.Stage, table.Name)
		got, err := c.tables.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(name)})
		if err != nil {
			return nil, fmt.Errorf("look at the table %s: %w", name, err)
		}
		set := got.TimeToLiveDescription
		if set == nil || aws.ToString(set.AttributeName) != table.TTL ||
			set.TimeToLiveStatus != types.TimeToLiveStatusEnabled && set.TimeToLiveStatus != types.TimeToLiveStatusEnabling {
			wrong = append(wrong, name)
		}
	}
	return wrong, nil
}

// JobEnd reads the items of a job, and returns the latest of their ends.
func (c *awsCloud) JobEnd(ctx context.Context, id string) (time.Time, error) {
	got, err := c.tables.Query(ctx, &dynamodb.QueryInput{
		TableName:                 aws.String(dynamo.TableName(c.Stage, "jobs")),
		KeyConditionExpression:    aws.String("id = :id"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":id": &types.AttributeValueMemberS{Value: id}},
		ConsistentRead:            aws.Bool(true),
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read the record of %s: %w", id, err)
	}
	if len(got.Items) == 0 {
		return time.Time{}, fmt.Errorf("there is no record of %s", id)
	}
	var last time.Time
	for _, item := range got.Items {
		number, ok := item["ttl"].(*types.AttributeValueMemberN)
		if !ok {
			return time.Time{}, nil
		}
		seconds, err := strconv.ParseInt(number.Value, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("the record of %s ends at %q", id, number.Value)
		}
		if end := time.Unix(seconds, 0); end.After(last) {
			last = end
		}
	}
	return last, nil
}

// Alarms reads the alarms whose names begin as the stage's do. Those of a stage whose
// name begins with this one's are among them, under names that no alarm has.
func (c *awsCloud) Alarms(ctx context.Context) (map[string]string, error) {
	states := map[string]string{}
	pages := cloudwatch.NewDescribeAlarmsPaginator(c.alarms,
		&cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: aws.String(c.name(""))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("look at the alarms: %w", err)
		}
		for _, alarm := range page.MetricAlarms {
			states[strings.TrimPrefix(aws.ToString(alarm.AlarmName), c.name(""))] = string(alarm.StateValue)
		}
	}
	return states, nil
}

// Forget deletes a key that was revoked.
func (c *awsCloud) Forget(ctx context.Context, key credential.Key) error {
	_, err := c.tables.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:           aws.String(dynamo.TableName(c.Stage, "credentials")),
		Key:                 map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key.ID}},
		ConditionExpression: aws.String("attribute_not_exists(id) OR attribute_exists(revoked_at)"),
	})
	if err != nil {
		return fmt.Errorf("delete the key: %w", err)
	}
	return nil
}
