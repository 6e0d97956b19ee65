package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	elb "github.com/aws/aws-cdk-go/awscdk/v2/awselasticloadbalancingv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/platform/httpserver"
	mediaapi "cutroom/shared/service/api"
)

// Metrics that filters extract from logs. AWS bills them only for hours with matching lines, so an
// idle month costs nothing.
const (
	mediaErrors5xx = "MediaErrors"
	coldRefusals   = "ColdRefusals"
	throttles      = "Throttles"
	deadLetters    = "DeadLetters"
)

// mediaAlarms returns alarms for API Gateway and its functions, or for the containers.
func (s *stack) mediaAlarms() []alarm {
	const errors = "media-errors"
	const fail = "The media service returned more than 5 responses with a 5xx status."
	refused := fmt.Sprintf(`($.%s = "%s")`, httpserver.RefusalKey, mediaapi.NoWorker)
	accepted := fmt.Sprintf("($.%s NOT EXISTS)", httpserver.RefusalKey)
	if b, ok := s.balancers["media"]; ok {
		log := s.logs["/cutroom/"+s.Stage+"/media"]
		s.count(log, "MediaErrors", mediaErrors5xx, `{ ($.msg = "request") && ($.status >= 500) && `+accepted+` }`)
		s.count(log, "ColdRefusals", coldRefusals, `{ `+refused+` }`)
		own := s.counted(mediaErrors5xx)
		return append(s.balancerAlarms("media", b), alarm{name: errors, means: fail, above: 5, periods: 1,
			// Include the balancer's own error responses, such as the response for a crashed task, because no log
			// contains them. The balancer's metric for its targets would include image edits that are rejected while
			// a worker starts.
			metric: sum("errors of the media service", map[string]awscloudwatch.IMetric{"own": own, "balancer": b.errors()}),
		}, alarm{name: "submission-latency", means: "The median response time of the media service is above 5 s.",
			metric: b.target.Metrics().TargetResponseTime(metricOptions("p50")), above: 5, periods: 3})
	}
	// API Gateway's own 5xx metric includes image edits that are rejected while a worker starts, which is normal
	// for an idle service. The access log has all other errors, even if a function never responded.
	access, images := s.logs["/cutroom/"+s.Stage+"/media-access"], s.logs["/aws/lambda/"+s.name("images")]
	s.count(access, "MediaErrors", mediaErrors5xx,
		`{ ($.status = "5*") && (($.status != "503") || ($.resource != "/v1/generate/{id}")) }`)
	s.count(images, "ImageErrors", mediaErrors5xx, `{ ($.msg = "request") && ($.status = 503) && `+accepted+` }`)
	s.count(images, "ColdRefusals", coldRefusals, `{ `+refused+` }`)
	return []alarm{{name: errors, means: fail, metric: s.counted(mediaErrors5xx), above: 5, periods: 1}}
}

func (s *stack) realtimeAlarms() []alarm {
	b, ok := s.balancers["realtime"]
	if !ok {
		return nil
	}
	return append(s.balancerAlarms("realtime", b), alarm{
		name: "realtime-errors", means: "The realtime service returned more than 5 responses with a 5xx status.",
		metric: sum("errors of the realtime service", map[string]awscloudwatch.IMetric{
			"own":      b.target.Metrics().HttpCodeTarget(elb.HttpCodeTarget_TARGET_5XX_COUNT, metricOptions("Sum")),
			"balancer": b.errors(),
		}), above: 5, periods: 1,
	}, alarm{name: "realtime-latency", means: "The median response time of the realtime service is above 5 s.",
		metric: b.target.Metrics().TargetResponseTime(metricOptions("p50")), above: 5, periods: 3})
}

// balancerAlarms returns alarms for tasks that do not respond. They also go off if no task is running, as for some
// minutes after a service has lost its only task.
func (s *stack) balancerAlarms(name string, b balancing) []alarm {
	return []alarm{{
		name: name + "-unhealthy", means: "Tasks of the " + name + " service are unhealthy, or none is running.",
		metric: awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
			Expression: jsii.String("unhealthy + IF(healthy < 1, 1, 0)"), Label: jsii.String("tasks that do not respond"),
			Period: period(),
			UsingMetrics: &map[string]awscloudwatch.IMetric{
				"unhealthy": b.target.Metrics().UnhealthyHostCount(metricOptions("Minimum")),
				"healthy":   b.target.Metrics().HealthyHostCount(metricOptions("Maximum")),
			},
		}), periods: 1, silence: true,
	}}
}

type balancing struct {
	balancer elb.ApplicationLoadBalancer
	target   elb.ApplicationTargetGroup
}

// errors counts the error responses from the balancer itself.
func (b balancing) errors() awscloudwatch.IMetric {
	return b.balancer.Metrics().HttpCodeElb(elb.HttpCodeElb_ELB_5XX_COUNT, metricOptions("Sum"))
}

func (s *stack) count(log awslogs.LogGroup, id, metric, pattern string) {
	awslogs.NewMetricFilter(s.Stack, jsii.String(id+"Filter"), &awslogs.MetricFilterProps{
		LogGroup: log, FilterPattern: awslogs.FilterPattern_Literal(jsii.String(pattern)),
		MetricNamespace: jsii.String(s.metricNamespace()), MetricName: jsii.String(metric), MetricValue: jsii.String("1"),
	})
}

func (s *stack) counted(metric string) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(s.metricNamespace()), MetricName: jsii.String(metric),
		Statistic: jsii.String("Sum"), Period: period(),
	})
}

func (s *stack) metricNamespace() string { return "Cutroom/" + s.Stage }
