package main

import "github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"

func (s *stack) newMediaAPI(logging apiLogging) awsapigateway.RestApi {
	return s.newAPI(api{
		name: "media", domain: s.Media, shape: mediaErrors, tooLarge: mediaTooLarge,
		description: "Media editing service of Cutroom, stage " + s.Stage,
		endpoints: []endpoint{
			{path: "/v1/jobs", function: "jobs"},
			{path: "/v1/jobs/{id}", function: "jobs"},
			{path: "/v1/jobs/{id}/events", function: "content"},
			{path: "/v1/jobs/{id}/content", function: "content"},
			{path: "/v1/jobs/{id}/thumbnail", function: "content"},
			{path: "/v1/jobs/{id}/preview", function: "content"},
			{path: "/v1/jobs/{id}/credentials", function: "c2pa"},
			{path: "/v1/jobs/{id}/shares", function: "jobs"},
			{path: "/v1/shares/{job_id}", function: "content"},
			{path: "/v1/jobs/{id}/deliveries", function: "jobs"},
			{path: "/v1/webhooks/secret", function: "jobs"},
			{path: "/v1/generate/{id}", function: "images"},
			{path: "/v1/files", function: "files"},
			{path: "/v1/files/{file_id}", function: "files"},
			{path: "/v1/files/by-md5/{md5}", function: "files"},
			{path: "/v1/uploads/{file_id}", function: "content"},
			{path: "/v1/uploads/{file_id}/thumbnail", function: "content"},
			{path: "/v1/uploads/{file_id}/credentials", function: "c2pa"},
			{path: "/v1/client/tokens", function: "tokens"},
			{path: "/v1/verify", function: "tokens"},
			{path: "/.well-known/jwks.json", function: "tokens"},
			{path: "/v1/keys", function: "tokens"},
			{path: "/v1/keys/{key_id}", function: "tokens"},
			{path: "/v1/audit", function: "tokens"},
			{path: "/v1/budgets", function: "tokens"},
			{path: "/v1/models/resolve", function: "models"},
			{path: "/v1/engine", function: "models"},
			{path: "/v1/looks", function: "models"},
			{path: "/v1/understand", function: "models"},
			{path: "/v1/realtime/quota", function: "quota"},
			{path: "/", function: "models"},
			{path: "/openapi.json", function: "models"},
			{path: "/docs", function: "models"},
			{path: "/healthz", function: "models"},
			{path: "/health", function: "models"},
		},
	}, logging)
}
