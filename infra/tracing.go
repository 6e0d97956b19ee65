package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsxray"
	"github.com/aws/jsii-runtime-go"
)

// tracingVariable tells the programs to send their spans to X-Ray (see
// shared/platform/xray).
const tracingVariable = "CUTROOM_TRACING"

// functionTracing says whether Lambda makes a segment of an invocation, which
// decides by the request's header or by the sampling rules.
func (s *stack) functionTracing() awslambda.Tracing {
	if s.Tracing {
		return awslambda.Tracing_ACTIVE
	}
	return awslambda.Tracing_DISABLED
}

// whyAnyTrace is why the permissions of X-Ray are for any resource.
const whyAnyTrace = "X-Ray has no resources to which the sending of traces could be narrowed."

// sendTraces is for containers, which send their spans to X-Ray's OTLP endpoint. Lambda
// gives functions that ask for tracing the permissions of its daemon by itself.
func (s *stack) sendTraces() []permission {
	if !s.Tracing {
		return nil
	}
	return []permission{{
		actions:   []string{"xray:PutSpans", "xray:PutSpansForIndexing"},
		resources: *jsii.Strings("*"), why: whyAnyTrace,
	}}
}

// traceExecutions is for the state machine, which asks X-Ray what to sample as well.
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

// Reads are most of the requests, as clients poll for their jobs, and say the
// least: one in a hundred is traced, and of all others what X-Ray's own rule says,
// the first of each second and one in twenty.
const (
	readRate     = 0.01
	readPriority = 100
	// longestRule is how long the name of a sampling rule may be.
	longestRule = 32
)

// newSamplingRules keeps what traces cost small.
func (s *stack) newSamplingRules() {
	if !s.Tracing {
		return
	}
	for _, api := range []string{"media", "inference"} {
		awsxray.NewCfnSamplingRule(s.Stack, jsii.String(title(api)+"ReadsSampling"), &awsxray.CfnSamplingRuleProps{
			SamplingRule: &awsxray.CfnSamplingRule_SamplingRuleProperty{
				RuleName: jsii.String(s.boundedName(api+"-reads", longestRule)), Version: jsii.Number(1), Priority: jsii.Number(readPriority),
				// API Gateway names itself by the API and its stage.
				ServiceName: jsii.String(s.name(api) + "/" + stageName), ServiceType: jsii.String("AWS::ApiGateway::Stage"),
				HttpMethod: jsii.String("GET"), Host: jsii.String("*"), UrlPath: jsii.String("*"), ResourceArn: jsii.String("*"),
				FixedRate: jsii.Number(readRate), ReservoirSize: jsii.Number(0),
			},
		})
	}
}
