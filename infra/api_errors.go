package main

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"
)

// errorShape returns an error's JSON body in the shape that an API uses.
type errorShape func(e gatewayError) string

type gatewayError struct {
	response awsapigateway.ResponseType
	// status is empty if each cause has its own status.
	status, message string
	// kind and code are the type and code of the inference gateway's errors (docs/contract/errors.md#gateway-errors).
	kind, code string
	retryAfter string
}

func mediaErrors(e gatewayError) string { return fmt.Sprintf(`{"detail":%q}`, e.message) }

func inferenceErrors(e gatewayError) string {
	code := "null"
	if e.code != "" {
		code = strconv.Quote(e.code)
	}
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%s}}`, e.message, e.kind, code)
}

// API Gateway and Lambda accept bodies of up to 6 MB. Form data is counted after base64 encoding.
// The media service's error names the route for larger files.
const (
	mediaTooLarge = "The body is too large to be sent through this address, which takes about 4.4 MB. Post " +
		"{filename, mime_type, size_bytes, md5} as JSON to /v1/files, PUT the bytes to the URL in the response, and use the " +
		"id of the file in place of its bytes."
	inferenceTooLarge = "The body is too large to be sent through this address, which takes about 6 MB."
)

// gatewayErrors returns every error response that API Gateway itself can send. The two defaults
// cover errors from authorizers and API keys, which the APIs do not use.
func gatewayErrors(tooLarge string) []gatewayError {
	const notFound, unavailable = "Not Found", "The service could not respond. Try again."
	return []gatewayError{
		// API Gateway treats an unknown route or method as a request without an AWS signature. With
		// an Authorization header it reports a bad signature.
		{response: awsapigateway.ResponseType_MISSING_AUTHENTICATION_TOKEN(), status: "404", message: notFound, kind: "invalid_request_error", code: "not_found"},
		{response: awsapigateway.ResponseType_INVALID_SIGNATURE(), status: "404", message: notFound, kind: "invalid_request_error", code: "not_found"},
		{response: awsapigateway.ResponseType_EXPIRED_TOKEN(), status: "404", message: notFound, kind: "invalid_request_error", code: "not_found"},
		{response: awsapigateway.ResponseType_RESOURCE_NOT_FOUND(), status: "404", message: notFound, kind: "invalid_request_error", code: "not_found"},
		{response: awsapigateway.ResponseType_REQUEST_TOO_LARGE(), status: "413", message: tooLarge, kind: "invalid_request_error", code: "request_too_large"},
		{response: awsapigateway.ResponseType_THROTTLED(), status: "429", message: "Too many requests.", kind: "rate_limit_error", code: "rate_limit_exceeded", retryAfter: "1"},
		{response: awsapigateway.ResponseType_QUOTA_EXCEEDED(), status: "429", message: "Too many requests.", kind: "rate_limit_error", code: "rate_limit_exceeded", retryAfter: "1"},
		{response: awsapigateway.ResponseType_INTEGRATION_TIMEOUT(), status: "504", message: "The service did not respond in time.", kind: "api_error", code: "upstream_timeout"},
		{response: awsapigateway.ResponseType_INTEGRATION_FAILURE(), status: "502", message: unavailable, kind: "api_error", code: "upstream_error"},
		{response: awsapigateway.ResponseType_API_CONFIGURATION_ERROR(), status: "500", message: "Internal server error", kind: "api_error"},
		{response: awsapigateway.ResponseType_DEFAULT_4XX(), message: "The request was rejected.", kind: "invalid_request_error"},
		{response: awsapigateway.ResponseType_DEFAULT_5XX(), message: unavailable, kind: "api_error"},
	}
}

// addGatewayResponses gives API Gateway's own errors the same shape as the API's errors, with the headers that
// browsers need to read them. API Gateway itself adds the request id as x-amzn-RequestId, because a header here
// can only be a constant or part of the request. AWS may reject a deployment with any other header value.
func (s *stack) addGatewayResponses(rest awsapigateway.RestApi, a api) {
	// These responses reveal nothing about an account, and API Gateway cannot choose between
	// origins. So if there are several, any page may read the responses.
	origin := "'*'"
	if len(s.Origins) == 1 {
		origin = "'" + s.Origins[0] + "'"
	}
	for _, e := range gatewayErrors(a.tooLarge) {
		headers := map[string]*string{
			"Access-Control-Allow-Origin":   jsii.String(origin),
			"Access-Control-Expose-Headers": jsii.String("'x-amzn-RequestId, Retry-After'"),
			"Cache-Control":                 jsii.String("'no-store'"),
		}
		if e.retryAfter != "" {
			headers["Retry-After"] = jsii.String("'" + e.retryAfter + "'")
		}
		options := &awsapigateway.GatewayResponseOptions{
			Type: e.response, ResponseHeaders: &headers,
			Templates: &map[string]*string{"application/json": jsii.String(a.shape(e))},
		}
		if e.status != "" {
			options.StatusCode = jsii.String(e.status)
		}
		rest.AddGatewayResponse(jsii.String(title(*e.response.ResponseType())), options)
	}
}
