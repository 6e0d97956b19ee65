package main

import (
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"
)

// newOutputs adds the stack outputs: the service's addresses and the user's first steps.
func (s *stack) newOutputs(media, inference awsapigateway.RestApi) {
	s.output("MediaUrl", "Base URL of the media service", s.urlOf(media, s.Media))
	s.output("InferenceUrl", "Base URL of the inference gateway", s.urlOf(inference, s.Inference))
	for name, rest := range map[string]awsapigateway.RestApi{"Media": media, "Inference": inference} {
		if domain := rest.DomainName(); domain != nil {
			s.output(name+"DomainTarget", "Alias target for the name of "+name, domain.DomainNameAliasDomainName())
		}
	}
	for _, name := range sortedKeys(s.tables) {
		s.output(title(name)+"TableName", "Table of "+name, s.tables[name].TableName())
	}
	for _, name := range sortedKeys(s.lanes) {
		s.output(title(name)+"QueueUrl", "Queue of the lane "+name, s.lanes[name].queue.QueueUrl())
	}
	s.output("BucketName", "Bucket of all blobs", s.bucketName())
	s.output("StateMachineArn", "State machine of jobs", s.stateMachineARN())
	s.output("FirstKey", "Command that creates the first key",
		jsii.String("cutroom keys create --stage "+s.Stage+" --account ACCOUNT --admin"))
}

func (s *stack) urlOf(rest awsapigateway.RestApi, d domain) *string {
	if d.set() {
		return jsii.String(s.originOf(rest, d))
	}
	// Do not use CDK's URL, which ends with a slash. Clients that append a path would get two slashes.
	return jsii.String(s.originOf(rest, d) + "/" + stageName)
}

func (s *stack) output(id, description string, value *string) {
	awscdk.NewCfnOutput(s.Stack, jsii.String(id),
		&awscdk.CfnOutputProps{Value: value, Description: jsii.String(description)})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
