package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/jsii-runtime-go"

	"cutroom/functions"
)

type alarm struct {
	name, means string
	metric      awscloudwatch.IMetric
	above       float64
	periods     int
	// silence makes missing data count as above the limit.
	silence bool
}

func period() awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(5)) }

func metricOptions(statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String(statistic), Period: period()}
}

// newAlarms makes the alarms. They notify the address or the topic from the options, if one is set. CloudWatch
// bills each metric of an alarm, so the alarms use few metrics.
func (s *stack) newAlarms(inference awsapigateway.RestApi) {
	topic := s.findTopic(s.AlarmTopic)
	if s.AlarmEmail != "" {
		own := awssns.NewTopic(s.Stack, jsii.String("Alarms"),
			&awssns.TopicProps{TopicName: jsii.String(s.name("alarms")), EnforceSSL: jsii.Bool(true)})
		own.AddToResourcePolicy(s.publishAlarms(own))
		own.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(s.AlarmEmail), nil))
		topic = own
	}
	s.addAlarms(topic, slices.Concat(s.mediaAlarms(), s.realtimeAlarms(), s.jobAlarms(), s.sharedAlarms(inference))...)
}

// findTopic returns an existing topic for alarms, or nil if no topic is set.
func (s *stack) findTopic(arn string) awssns.ITopic {
	if s.AlarmEmail+s.AlarmTopic == "" || arn == "" {
		return nil
	}
	return awssns.Topic_FromTopicArn(s.Stack, jsii.String("AlarmTopic"), jsii.String(arn))
}

func (s *stack) addAlarms(topic awssns.ITopic, alarms ...alarm) {
	for _, a := range alarms {
		missing := awscloudwatch.TreatMissingData_NOT_BREACHING
		if a.silence {
			missing = awscloudwatch.TreatMissingData_BREACHING
		}
		alarm := awscloudwatch.NewAlarm(s.Stack, jsii.String(title(a.name)+"Alarm"), &awscloudwatch.AlarmProps{
			AlarmName: jsii.String(s.name(a.name)), AlarmDescription: s.describeAlarm(a.name, a.means),
			Metric: a.metric, Threshold: jsii.Number(a.above), EvaluationPeriods: jsii.Number(a.periods),
			ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD,
			TreatMissingData:   missing,
		})
		s.alarms[a.name] = alarm
		if topic != nil {
			alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
		}
	}
}

// forgottenGPU returns an alarm for instances that run although the preview workers take the jobs.
func (s *stack) forgottenGPU() alarm {
	hour := awscdk.Duration_Hours(jsii.Number(1))
	return alarm{
		name: "gpu-prepared", means: "For a day, a GPU has been running with gpu=prepare, which gives it few jobs.",
		// ECS counts a sample a minute for each running task.
		metric: awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/ECS"), MetricName: jsii.String("CPUUtilization"), Statistic: jsii.String("SampleCount"),
			Period: hour, DimensionsMap: &map[string]*string{
				"ClusterName": jsii.String(s.workerCluster()), "ServiceName": jsii.String(s.workerService())},
		}), periods: 24,
	}
}

// newBudget announces when the account's bill for the month is about to exceed the budget from the options. It is not
// limited to the stage's tags, because AWS ignores tags until they are activated in the billing console.
func (s *stack) newBudget() {
	if s.Budget == 0 {
		return
	}
	subscriber := map[string]any{"SubscriptionType": "EMAIL", "Address": s.AlarmEmail}
	if s.AlarmTopic != "" {
		subscriber = map[string]any{"SubscriptionType": "SNS", "Address": s.AlarmTopic}
	}
	var notices []any
	for _, kind := range []string{"FORECASTED", "ACTUAL"} {
		notices = append(notices, map[string]any{
			"Notification": map[string]any{"NotificationType": kind, "ComparisonOperator": "GREATER_THAN", "Threshold": 100},
			"Subscribers":  []any{subscriber},
		})
	}
	awscdk.NewCfnResource(s.Stack, jsii.String("Budget"), &awscdk.CfnResourceProps{
		Type: jsii.String("AWS::Budgets::Budget"), Properties: &map[string]any{
			"Budget": map[string]any{"BudgetType": "COST", "TimeUnit": "MONTHLY",
				"BudgetLimit": map[string]any{"Amount": s.Budget, "Unit": "USD"}},
			"NotificationsWithSubscribers": notices,
		},
	})
}

// publishAlarms lets the stage's alarms publish to the topic. A topic with its own policy, such as
// one that requires TLS, loses the default statement that lets everything in the account publish.
func (s *stack) publishAlarms(topic awssns.Topic) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("AllowAlarms"),
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)},
		Actions:    jsii.Strings("sns:Publish"), Resources: &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{
			"ArnLike":      map[string]any{"aws:SourceArn": s.arn("cloudwatch", "alarm:"+s.name("*"))},
			"StringEquals": map[string]any{"aws:SourceAccount": s.Account()},
		},
	})
}

func (s *stack) jobAlarms() []alarm {
	alarms := []alarm{
		{name: "failed-executions",
			means:  "More than 5 executions failed: the state machine could not record how their jobs ended.",
			metric: s.executions("ExecutionsFailed"), above: 5, periods: 1},
		{name: "dead-letters", means: "Messages were received 10 times without being processed.",
			metric: s.deadLetters(), periods: 1},
		{name: "video-queue-age", means: "A video job has been waiting for more than 3 minutes.",
			metric: s.waiting("video", 3), above: 180, periods: 1},
		{name: "image-queue-age", means: "An image edit has been waiting for more than a minute.",
			metric: s.waiting("image", 2), above: 60, periods: 1},
	}
	if s.hasWorker() {
		alarms = append(alarms, alarm{name: "image-refusals",
			means:  "Image edits have been rejected for 20 minutes because no worker has started.",
			metric: s.counted(coldRefusals), periods: 4})
	}
	return alarms
}

func (s *stack) sharedAlarms(inference awsapigateway.RestApi) []alarm {
	return []alarm{
		{name: "inference-errors", means: "The inference gateway returned more than 5 responses with a 5xx status.",
			metric: inference.MetricServerError(metricOptions("Sum")), above: 5, periods: 1},
		{name: "internal-errors", means: "Functions started by events have failed more than twice.",
			metric: s.sumOf("Errors", s.watchedFunctions()...), above: 2, periods: 1},
		{name: "late-events", means: "expiry or webhooks has not processed a table's changes for more than an hour.",
			metric: s.streamAge("expiry", "webhooks"), above: time.Hour.Seconds() * 1000, periods: 1},
		{name: "webhook-dead-letters", means: "The service failed to send webhooks. Their receivers are not the cause.",
			metric: s.lostWebhooks(), periods: 1},
		{name: "function-throttles",
			means:  "Lambda throttled calls of the APIs: the account has reached its limit of concurrent executions.",
			metric: s.functionThrottles(), periods: 1},
	}
}

// watchedFunctions lists the event-driven functions whose errors raise an alarm. Other alarms show the effects of the rest,
// but too late for a rollback.
func (s *stack) watchedFunctions() []string {
	if s.Canary {
		return slices.Sorted(maps.Keys(internalConcurrency))
	}
	return []string{"reaper", "arrived", "scale"}
}

func (s *stack) describeAlarm(name, means string) *string {
	return jsii.String(means + ` See "` + name + `" in docs/runbook.md.`)
}

func sum(label string, metrics map[string]awscloudwatch.IMetric) awscloudwatch.MathExpression {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("SUM(METRICS())"), Label: jsii.String(label), UsingMetrics: &metrics, Period: period(),
	})
}

func (s *stack) sumOf(metric string, functions ...string) awscloudwatch.MathExpression {
	return sum(metric, s.metricsOf(metric, "Sum", functions))
}

func (s *stack) metricsOf(metric, statistic string, functions []string) map[string]awscloudwatch.IMetric {
	metrics := map[string]awscloudwatch.IMetric{}
	for _, name := range functions {
		if f, ok := s.functions[name]; ok {
			metrics[name] = f.Metric(jsii.String(metric), metricOptions(statistic))
		}
	}
	return metrics
}

// streamAge returns the age, in milliseconds, of the oldest change that one of the functions has not processed. Lambda
// repeats a failed change until it is a day old, and counts no error if only some changes of a batch failed.
func (s *stack) streamAge(functions ...string) awscloudwatch.MathExpression {
	metrics := s.metricsOf("IteratorAge", "Maximum", functions)
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("MAX(METRICS())"), Label: jsii.String("age"), UsingMetrics: &metrics, Period: period(),
	})
}

// deadLetters counts the jobs in the dead-letter queues. The queues' metrics would include events that the reaper missed,
// which must not roll back the workers.
func (s *stack) deadLetters() awscloudwatch.IMetric {
	s.count(s.logs["/aws/lambda/"+s.name("reaper")], "DeadLetters", deadLetters,
		fmt.Sprintf(`{ ($.msg = "%s") || ($.msg = "%s") }`, functions.JobGivenUp, functions.JobNotEnded))
	return s.counted(deadLetters)
}

func (s *stack) executions(metric string) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/States"), MetricName: jsii.String(metric), Statistic: jsii.String("Sum"),
		Period:        period(),
		DimensionsMap: &map[string]*string{"StateMachineArn": s.stateMachineARN()}, Label: jsii.String(metric),
	})
}

// waiting returns the age of a queue's oldest message, in seconds, or 0 if no message was waiting at some time during
// the given minutes. A high age may only mean a long edit, because SQS includes messages in progress. The number of
// waiting messages does not show how long they have waited. So a queue is late only if it always has waiting messages
// and its oldest message is over the limit.
func (s *stack) waiting(lane string, minutes int) awscloudwatch.MathExpression {
	over := awscdk.Duration_Minutes(jsii.Number(minutes))
	queue := s.lanes[lane].queue
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("IF(visible > 0, age, 0)"), Label: jsii.String(lane + " waits"), Period: over,
		UsingMetrics: &map[string]awscloudwatch.IMetric{
			"visible": queue.MetricApproximateNumberOfMessagesVisible(
				&awscloudwatch.MetricOptions{Statistic: jsii.String("Minimum"), Period: over}),
			"age": queue.MetricApproximateAgeOfOldestMessage(
				&awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: over}),
		},
	})
}

// functionThrottles counts the calls for which API Gateway found a function throttled. Only the access logs of the
// stage's APIs have them: Lambda's metrics would be one for each function, or one for the entire account.
func (s *stack) functionThrottles() awscloudwatch.IMetric {
	for _, api := range []string{"media", "inference"} {
		s.count(s.logs["/cutroom/"+s.Stage+"/"+api+"-access"], title(api)+"Throttles", throttles, `{ $.integration = "429" }`)
	}
	return s.counted(throttles)
}
