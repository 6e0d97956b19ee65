package main

import "github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"

// newInferenceAPI makes the API of the inference gateway.
func (s *stack) newInferenceAPI(logging apiLogging) awsapigateway.RestApi {
	return s.newAPI(api{
		name: "inference", domain: s.Inference, shape: inferenceErrors, tooLarge: inferenceTooLarge,
		description: "Text inference gateway of Cutroom, stage " + s.Stage,
		endpoints: []endpoint{
			{path: "/v1/chat/completions", function: "inference", streams: true},
			{path: "/v1/completions", function: "inference", streams: true},
			{path: "/v1/models", function: "inference", streams: true},
			{path: "/v1/models/{id}", function: "inference", streams: true},
			{path: "/v1/usage", function: "inference", streams: true},
			{path: "/", function: "inference", streams: true},
		},
	}, logging)
}
