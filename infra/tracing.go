package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsxray"
	"github.com/aws/jsii-runtime-go"
)

const tracingVariable = "CUTROOM_TRACING"

// functionTracing returns the functions' tracing mode. If tracing is on, the request's header or
// the sampling rules decide whether Lambda records a segment.
func (s *stack) functionTracing() awslambda.Tracing {
	if s.Tracing {
		return awslambda.Tracing_ACTIVE
	}
	return awslambda.Tracing_DISABLED
}

const whyAnyTrace = "X-Ray's actions for sending traces do not support resource-level permissions."

// sendTraces returns the permissions of containers to send their spans to X-Ray's OTLP endpoint.
// Lambda itself records the functions' segments.
func (s *stack) sendTraces() []permission {
	if !s.Tracing {
		return nil
	}
	return []permission{{
		actions:   []string{"xray:PutSpans", "xray:PutSpansForIndexing"},
		resources: *jsii.Strings("*"), why: whyAnyTrace,
	}}
}

// traceExecutions returns the state machine's permissions to send traces and to read X-Ray's sampling rules.
func (s *stack) traceExecutions() []permission {
	if !s.Tracing {
		return nil
	}
	return []permission{{
		actions: []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules",
			"xray:GetSamplingTargets"},
		resources: *jsii.Strings("*"), why: whyAnyTrace,
	}}
}

// Most requests are reads, because clients poll for their jobs. Their traces are the least useful, so only one in a
// hundred is traced. All other requests follow X-Ray's default rule: the first of each second and one in twenty.
const (
	readRate     = 0.01
	readPriority = 100
	longestRule  = 32
)

func (s *stack) newSamplingRules() {
	if !s.Tracing {
		return
	}
	for _, api := range []string{"media", "inference"} {
		awsxray.NewCfnSamplingRule(s.Stack, jsii.String(title(api)+"ReadsSampling"), &awsxray.CfnSamplingRuleProps{
			SamplingRule: &awsxray.CfnSamplingRule_SamplingRuleProperty{
				RuleName: jsii.String(s.boundedName(api+"-reads", longestRule)), Version: jsii.Number(1), Priority: jsii.Number(readPriority),
				// API Gateway's service name consists of the API's name and its stage.
				ServiceName: jsii.String(s.name(api) + "/" + stageName), ServiceType: jsii.String("AWS::ApiGateway::Stage"),
				HttpMethod: jsii.String("GET"), Host: jsii.String("*"), UrlPath: jsii.String("*"), ResourceArn: jsii.String("*"),
				FixedRate: jsii.Number(readRate), ReservoirSize: jsii.Number(0),
			},
		})
	}
}
