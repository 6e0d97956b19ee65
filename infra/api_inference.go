package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"

	"cutroom/functions"
)

func (s *stack) newInferenceAPI(logging apiLogging) awsapigateway.RestApi {
	return s.newAPI(api{
		name: "inference", domain: s.Inference, shape: inferenceErrors, tooLarge: inferenceTooLarge,
		description: "Text inference gateway of Cutroom, stage " + s.Stage,
		endpoints: []endpoint{
			{path: "/v1/chat/completions", function: "inference"},
			{path: "/v1/completions", function: "inference"},
			{path: "/v1/responses", function: "inference"},
			{path: "/v1/responses/{response_id}", function: "inference"},
			{path: "/v1/responses/{response_id}/input_items", function: "inference"},
			{path: "/v1/audio/transcriptions", function: "inference"},
			{path: "/v1/audio/speech", function: "inference"},
			{path: "/v1/messages", function: "inference"},
			{path: "/v1/messages/count_tokens", function: "inference"},
			{path: "/v1/embeddings", function: "inference"},
			{path: "/v1/rerank", function: "inference"},
			{path: "/v2/rerank", function: "inference"},
			{path: "/rerank", function: "inference"},
			{path: "/v1/score", function: "inference"},
			{path: "/v1/models", function: "inference"},
			{path: "/v1/models/{id}", function: "inference"},
			{path: "/v1/usage", function: "inference"},
			{path: "/v1/files", function: "batches"},
			{path: "/v1/files/{file_id}", function: "batches"},
			{path: "/v1/files/{file_id}/content", function: "batches"},
			{path: "/v1/batches", function: "batches"},
			{path: "/v1/batches/{batch_id}", function: "batches"},
			{path: "/v1/batches/{batch_id}/cancel", function: "batches"},
			{path: "/v1/images/edits", function: "images"},
			{path: "/v1/images/generations", function: "images"},
			{path: "/v1/videos", function: "jobs"},
			{path: "/v1/videos/edits", function: "jobs"},
			{path: "/v1/videos/{id}", function: "jobs"},
			{path: "/v1/videos/{id}/remix", function: "jobs"},
			{path: "/v1/videos/{id}/content", function: "content"},
			{path: "/v1/shares/{job_id}", function: "content"},
			{path: "/", function: "inference"},
		},
	}, logging)
}

// setGatewayURL sets the inference gateway's URL for the functions that describe the service, because the OpenAPI
// document covers both APIs. SAM does not resolve references, so locally the functions keep the default.
func (s *stack) setGatewayURL(inference awsapigateway.RestApi) {
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
