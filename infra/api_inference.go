package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"

	"cutroom/functions"
)

// newInferenceAPI creates the API of the inference gateway.
func (s *stack) newInferenceAPI(logging apiLogging) awsapigateway.RestApi {
	return s.newAPI(api{
		name: "inference", domain: s.Inference, shape: inferenceErrors, tooLarge: inferenceTooLarge,
		description: "Text inference gateway of Cutroom, stage " + s.Stage,
		endpoints: []endpoint{
			{path: "/v1/chat/completions", function: "inference"},
			{path: "/v1/completions", function: "inference"},
			{path: "/v1/responses", function: "inference"},
			{path: "/v1/messages", function: "inference"},
			{path: "/v1/messages/count_tokens", function: "inference"},
			{path: "/v1/embeddings", function: "inference"},
			{path: "/v1/rerank", function: "inference"},
			{path: "/v1/score", function: "inference"},
			{path: "/v1/models", function: "inference"},
			{path: "/v1/models/{id}", function: "inference"},
			{path: "/v1/usage", function: "inference"},
			{path: "/", function: "inference"},
		},
	}, logging)
}

// tellGateway sets the URL of the inference gateway for the functions that describe
// the service: the OpenAPI document covers both APIs. Runners of local functions do
// not resolve references, so there the default stays.
func (s *stack) tellGateway(inference awsapigateway.RestApi) {
	if s.Endpoint != "" {
		return
	}
	s.gatewayURL = s.urlOf(inference, s.Inference)
	const variable = "CUTROOM_PUBLIC_INFERENCE_URL"
	for _, f := range functions.All() {
		if slices.Contains(f.Variables, variable) {
			s.functions[f.Name].AddEnvironment(jsii.String(variable), s.gatewayURL, nil)
		}
	}
}
