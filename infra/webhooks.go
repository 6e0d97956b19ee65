package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/job"
)

// webhooksAtOnce is the maximum concurrency of the webhooks function. It keeps slow receivers from
// using up the account's functions. Each instance sends up to ten webhooks.
const webhooksAtOnce = 10

// newWebhookQueue creates the queue that keeps each webhook's next attempt until it is due. It is a
// standard queue with the account as message group, and SQS serves the groups fairly.
func (s *stack) newWebhookQueue() lane {
	dead := awssqs.NewQueue(s.Stack, jsii.String("WebhookDeadLetters"), &awssqs.QueueProps{
		QueueName:       jsii.String(s.name("webhook-dead-letters")),
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
	})
	queue := awssqs.NewQueue(s.Stack, jsii.String("WebhookQueue"), &awssqs.QueueProps{
		QueueName:  jsii.String(s.name("webhooks")),
		Encryption: awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL: jsii.Bool(true),
		// Each message waits for only one attempt, so the retention period matters only while the function is
		// disabled.
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(4)),
		// Lambda recommends six times the function's timeout, which is one minute.
		VisibilityTimeout: awscdk.Duration_Minutes(jsii.Number(6)),
		DeadLetterQueue:   &awssqs.DeadLetterQueue{MaxReceiveCount: jsii.Number(maxReceives), Queue: dead},
	})
	return lane{queue, dead}
}

// newWebhooks connects the webhooks function to ended jobs that have a webhook, to budget warnings,
// and to due attempts.
func (s *stack) newWebhooks() {
	webhooks := s.functions["webhooks"]
	webhooks.AddEventSource(
		awslambdaeventsources.NewSqsEventSource(s.webhooks.queue, &awslambdaeventsources.SqsEventSourceProps{
			BatchSize: jsii.Number(10), ReportBatchItemFailures: jsii.Bool(true), MaxConcurrency: jsii.Number(webhooksAtOnce),
		}))
	// Jobs without a webhook, and changes before a job's end, do not invoke the function and cost nothing.
	text := func(rule any) map[string]any { return map[string]any{"S": rule} }
	s.streamTo(webhooks, "jobs", map[string]any{
		"part":    text(awslambda.FilterRule_IsEqual(jsii.String(dynamo.RecordPart))),
		"webhook": text(awslambda.FilterRule_Exists()),
		"status":  text(awslambda.FilterRule_Or(jsii.String(string(job.Completed)), jsii.String(string(job.Failed)))),
	})
	s.streamTo(webhooks, "usage", map[string]any{
		"part": text(awslambda.FilterRule_IsEqual(jsii.String(dynamo.WarningPart))),
	})
}

// streamTo invokes a function for a table's changes if the new item matches the filter.
func (s *stack) streamTo(f awslambda.Function, table string, image map[string]any) {
	f.AddEventSource(
		awslambdaeventsources.NewDynamoEventSource(s.tables[table], &awslambdaeventsources.DynamoEventSourceProps{
			StartingPosition: awslambda.StartingPosition_TRIM_HORIZON,
			BatchSize:        jsii.Number(100), BisectBatchOnError: jsii.Bool(true), ReportBatchItemFailures: jsii.Bool(true),
			Filters: &[]*map[string]any{awslambda.FilterCriteria_Filter(&map[string]any{
				"dynamodb": map[string]any{"NewImage": image},
			})},
		}))
}

func (s *stack) webhookQueueURL() *string {
	if s.Endpoint != "" {
		return jsii.String(s.Endpoint + "/" + localAccount + "/" + s.name("webhooks"))
	}
	return s.webhooks.queue.QueueUrl()
}

func (s *stack) webhookAllow() *string {
	if len(s.WebhookAllow) == 0 {
		return nil
	}
	return jsii.String(strings.Join(s.WebhookAllow, ","))
}

// sendWebhooks returns the permissions of the function that sends webhooks. It reads jobs and warnings, writes
// the delivery log, queues the next attempts, and derives accounts' secrets from the service's secret.
func (s *stack) sendWebhooks() []permission {
	return []permission{
		s.onTable("jobs", "Query", "GetItem", "UpdateItem"), s.onTable("usage", "GetItem"),
		{actions: []string{"sqs:SendMessage"}, resources: []*string{s.webhooks.queue.QueueArn()}},
		{actions: []string{"secretsmanager:GetSecretValue"}, resources: []*string{s.secret.SecretArn()}},
	}
}

func (s *stack) lostWebhooks() awscloudwatch.IMetric {
	return s.webhooks.dead.MetricApproximateNumberOfMessagesVisible(metricOptions("Maximum"))
}
