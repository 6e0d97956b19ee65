package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// alarm describes an alarm: the metric is above a bound for some minutes.
type alarm struct {
	name, means string
	metric      awscloudwatch.IMetric
	above       float64
	// periods is the number of periods of five minutes that the metric must be above
	// the bound.
	periods int
}

// period is the time that a point of most metrics covers.
func period() awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(5)) }

func metricOptions(statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String(statistic), Period: period()}
}

// newAlarms creates the alarms, which notify the address of the options if there is
// one. CloudWatch bills every metric of an alarm, so they use few.
func (s *stack) newAlarms(media, inference awsapigateway.RestApi) []interfacesawscloudwatch.IAlarmRef {
	var topic awssns.Topic
	if s.AlarmEmail != "" {
		topic = awssns.NewTopic(s.Stack, jsii.String("Alarms"),
			&awssns.TopicProps{TopicName: jsii.String(s.name("alarms")), EnforceSSL: jsii.Bool(true)})
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(s.AlarmEmail), nil))
	}
	alarms := []alarm{
		{"media-errors", "More than 5 answers of the media service were 5xx.", media.MetricServerError(metricOptions("Sum")), 5, 1},
		{"inference-errors", "More than 5 answers of the inference gateway were 5xx.", inference.MetricServerError(metricOptions("Sum")), 5, 1},
		{"submission-latency", "Half of the submissions and job reads take more than 5 s.", s.functions["jobs"].MetricDuration(metricOptions("p50")), 5000, 3},
		{"failed-executions", "Jobs end without their outcome being recorded by the state machine.", s.failedExecutions(), 5, 1},
		{"dead-letters", "Messages were received 10 times and never done.", s.deadLetters(), 0, 1},
		{"video-queue-age", "A video job waits for more than 3 minutes.", s.lanes["video"].queue.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum")), 180, 1},
		{"image-queue-age", "An image edit waits for more than a minute.", s.lanes["image"].queue.MetricApproximateAgeOfOldestMessage(metricOptions("Maximum")), 60, 1},
		{"internal-errors", "The functions that events start fail.", s.sumOf("Errors", "reaper", "arrived", "expiry", "webhooks", "wake", "scale"), 2, 1},
		{"webhook-dead-letters", "Webhooks were given up on by the service itself, not by their receivers.", s.lostWebhooks(), 0, 1},
		{"function-throttles", "Lambda turns requests away, as the account's functions run as often at once as they may.", s.functionThrottles(), 0, 1},
		{"table-throttles", "DynamoDB turns requests away.", s.tableThrottles(), 10, 1},
	}
	var made []interfacesawscloudwatch.IAlarmRef
	for _, a := range alarms {
		alarm := awscloudwatch.NewAlarm(s.Stack, jsii.String(title(a.name)+"Alarm"), &awscloudwatch.AlarmProps{
			AlarmName: jsii.String(s.name(a.name)), AlarmDescription: s.describeAlarm(a.name, a.means),
			Metric: a.metric, Threshold: jsii.Number(a.above), EvaluationPeriods: jsii.Number(a.periods),
			ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD,
			TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
		})
		if topic != nil {
			alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
		}
		made = append(made, alarm)
	}
	return made
}

// describeAlarm returns what an alarm means and where to read what to do.
func (s *stack) describeAlarm(name, means string) *string {
	return jsii.String(means + ` See "` + name + `" in docs/runbook.md.`)
}

// sum returns the sum of metrics.
func sum(label string, metrics map[string]awscloudwatch.IMetric) awscloudwatch.MathExpression {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("SUM(METRICS())"), Label: jsii.String(label), UsingMetrics: &metrics, Period: period(),
	})
}

// sumOf returns the sum of a metric of those of the functions that the stack has.
func (s *stack) sumOf(metric string, functions ...string) awscloudwatch.MathExpression {
	metrics := map[string]awscloudwatch.IMetric{}
	for _, name := range functions {
		if f, ok := s.functions[name]; ok {
			metrics[name] = f.Metric(jsii.String(metric), metricOptions("Sum"))
		}
	}
	return sum(metric, metrics)
}

func (s *stack) deadLetters() awscloudwatch.MathExpression {
	metrics := map[string]awscloudwatch.IMetric{}
	for name, lane := range s.lanes {
		metrics[name] = lane.dead.MetricNumberOfMessagesReceived(metricOptions("Sum"))
	}
	return sum("dead letters", metrics)
}

func (s *stack) executions(metric string) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/States"), MetricName: jsii.String(metric), Statistic: jsii.String("Sum"),
		Period:        period(),
		DimensionsMap: &map[string]*string{"StateMachineArn": s.stateMachineARN()}, Label: jsii.String(metric),
	})
}

func (s *stack) failedExecutions() awscloudwatch.MathExpression {
	metrics := map[string]awscloudwatch.IMetric{}
	for id, metric := range map[string]string{"failed": "ExecutionsFailed", "aborted": "ExecutionsAborted"} {
		metrics[id] = s.executions(metric)
	}
	return sum("executions that did not succeed", metrics)
}

// functionThrottles covers all functions of the account, because they share one
// limit.
func (s *stack) functionThrottles() awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/Lambda"), MetricName: jsii.String("Throttles"), Statistic: jsii.String("Sum"),
		Period: period(), Label: jsii.String("functions"),
	})
}

// tableThrottles covers the tables with the most writes.
func (s *stack) tableThrottles() awscloudwatch.MathExpression {
	metrics := map[string]awscloudwatch.IMetric{}
	for _, name := range []string{"jobs", "usage"} {
		metrics[name] = s.tables[name].Metric(jsii.String("WriteThrottleEvents"), metricOptions("Sum"))
	}
	return sum("throttled writes", metrics)
}
