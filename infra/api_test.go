package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// methods returns the methods of all APIs, keyed like "media ANY /v1/jobs".
func (m template) methods(t *testing.T) map[string]resource {
	t.Helper()
	resources := m.of(t, "AWS::ApiGateway::Resource")
	var path func(id string) string
	path = func(id string) string {
		if id == "" {
			return "/" // the root has no resource
		}
		r := resources[id]
		parent, _ := at(r.Properties, "ParentId", "Ref").(string)
		prefix := ""
		if parent != "" {
			prefix = path(parent)
		}
		return prefix + "/" + r.Properties["PathPart"].(string)
	}
	apis := map[string]string{}
	for id, api := range m.of(t, "AWS::ApiGateway::RestApi") {
		apis[id] = strings.TrimPrefix(api.Properties["Name"].(string), "cutroom-dev-")
	}
	found := map[string]resource{}
	for _, method := range m.of(t, "AWS::ApiGateway::Method") {
		id, _ := at(method.Properties, "ResourceId", "Ref").(string)
		api, _ := at(method.Properties, "RestApiId", "Ref").(string)
		found[apis[api]+" "+method.Properties["HttpMethod"].(string)+" "+path(id)] = method
	}
	return found
}

// way describes how API Gateway returns a method's responses.
type way struct {
	// mode is "STREAM", or empty for a buffered response.
	mode string
	// timeout is in milliseconds.
	timeout float64
}

var ways = map[string]way{
	"media ANY /v1/jobs/{id}":                     {"", 29000},
	"media ANY /v1/jobs":                          {"", 29000},
	"media ANY /v1/jobs/{id}/events":              {"STREAM", 900000},
	"media ANY /v1/uploads/{file_id}":             {"STREAM", 900000},
	"media ANY /v1/jobs/{id}/content":             {"STREAM", 900000},
	"media ANY /v1/jobs/{id}/thumbnail":           {"STREAM", 900000},
	"media ANY /v1/jobs/{id}/preview":             {"STREAM", 900000},
	"media ANY /v1/jobs/{id}/credentials":         {"", 29000},
	"media ANY /v1/jobs/{id}/shares":              {"", 29000},
	"media ANY /v1/shares/{job_id}":               {"STREAM", 900000},
	"media ANY /v1/jobs/{id}/deliveries":          {"", 29000},
	"media ANY /v1/webhooks/secret":               {"", 29000},
	"media ANY /v1/generate/{id}":                 {"STREAM", 290000},
	"media ANY /v1/files":                         {"", 29000},
	"media ANY /v1/files/{file_id}":               {"", 29000},
	"media ANY /v1/uploads/{file_id}/thumbnail":   {"STREAM", 900000},
	"media ANY /v1/uploads/{file_id}/credentials": {"", 29000},
	"media ANY /v1/files/by-md5/{md5}":            {"", 29000},
	"media ANY /v1/client/tokens":                 {"", 29000},
	"media ANY /v1/verify":                        {"", 29000},
	"media ANY /.well-known/jwks.json":            {"", 29000},
	"media ANY /v1/keys":                          {"", 29000},
	"media ANY /v1/keys/{key_id}":                 {"", 29000},
	"media ANY /v1/audit":                         {"", 29000},
	"media ANY /v1/budgets":                       {"", 29000},
	"media ANY /v1/models/resolve":                {"", 29000},
	"media ANY /v1/engine":                        {"", 29000},
	"media ANY /v1/looks":                         {"", 29000},
	"media ANY /v1/understand":                    {"", 29000},
	"media ANY /v1/realtime/quota":                {"", 29000},
	"media ANY /":                                 {"", 29000},
	"media ANY /openapi.json":                     {"", 29000},
	"media ANY /docs":                             {"", 29000},
	"media ANY /healthz":                          {"", 29000},
	"media ANY /health":                           {"", 29000},
	"inference ANY /v1/chat/completions":          {"STREAM", 900000},
	"inference ANY /v1/completions":               {"STREAM", 900000},
	"inference ANY /v1/models":                    {"STREAM", 900000},
	"inference ANY /v1/models/{id}":               {"STREAM", 900000},
	"inference ANY /v1/usage":                     {"STREAM", 900000},
	"inference ANY /v1/files":                     {"STREAM", 900000},
	"inference ANY /v1/files/{file_id}":           {"STREAM", 900000},
	"inference ANY /v1/files/{file_id}/content":   {"STREAM", 900000},
	"inference ANY /v1/batches":                   {"STREAM", 900000},
	"inference ANY /v1/batches/{batch_id}":        {"STREAM", 900000},
	"inference ANY /v1/batches/{batch_id}/cancel": {"STREAM", 900000},
	"inference ANY /":                             {"STREAM", 900000},
	"inference ANY /v1/responses":                 {"STREAM", 900000},
	"inference ANY /v1/responses/{response_id}":   {"STREAM", 900000},
	"inference ANY /v1/messages":                  {"STREAM", 900000},
	"inference ANY /v1/messages/count_tokens":     {"STREAM", 900000},
	"inference ANY /v1/embeddings":                {"STREAM", 900000},
	"inference ANY /v1/rerank":                    {"STREAM", 900000},
	"inference ANY /v2/rerank":                    {"STREAM", 900000},
	"inference ANY /rerank":                       {"STREAM", 900000},
	"inference ANY /v1/score":                     {"STREAM", 900000},
	"inference ANY /v1/images/edits":              {"STREAM", 290000},
	"inference ANY /v1/images/generations":        {"STREAM", 290000},
	"inference ANY /v1/videos":                    {"", 29000},
	"inference ANY /v1/videos/{id}":               {"", 29000},
	"inference ANY /v1/videos/{id}/content":       {"STREAM", 900000},
	"inference ANY /v1/shares/{job_id}":           {"STREAM", 900000},
	"inference ANY /v1/audio/transcriptions":      {"STREAM", 900000},
	"inference ANY /v1/audio/speech":              {"STREAM", 900000},
	"inference ANY /v1/videos/edits":              {"", 29000},
	"inference ANY /v1/videos/{id}/remix":         {"", 29000},

	"inference ANY /v1/responses/{response_id}/input_items": {"STREAM", 900000},
}

func TestAPIsStreamAsInTheContract(t *testing.T) {
	for _, streaming := range []string{"on", "off"} {
		t.Run(streaming, func(t *testing.T) {
			made := synthesize(t, map[string]any{"worker": "none", "watch": "off", "streaming": streaming})
			methods := made.methods(t)
			if len(methods) != len(ways) {
				t.Errorf("there are %d methods, want %d", len(methods), len(ways))
			}
			for name, want := range ways {
				if streaming == "off" {
					want = way{"", 29000}
				}
				checkMethod(t, name, methods[name], want)
			}
			types := []any{"multipart/form-data"}
			if streaming == "off" {
				types = []any{"*/*"}
			}
			made.AllResourcesProperties(jsii.String("AWS::ApiGateway::RestApi"), map[string]any{
				"BinaryMediaTypes": types, "EndpointConfiguration": map[string]any{"Types": []any{"REGIONAL"}},
				"SecurityPolicy": "SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09", "EndpointAccessMode": "BASIC",
			})
		})
	}
}

// checkMethod checks how a method passes requests to its function, and how the responses are returned.
func checkMethod(t *testing.T, name string, method resource, want way) {
	t.Helper()
	integration := method.Properties["Integration"]
	mode, _ := at(integration, "ResponseTransferMode").(string)
	timeout, _ := at(integration, "TimeoutInMillis").(float64)
	if (way{mode, timeout}) != want {
		t.Errorf("%s returns %q within %v ms, want %+v", name, mode, timeout, want)
	}
	// API Gateway uses a different invocation ARN for streaming.
	uri := fmt.Sprint(at(integration, "Uri"))
	if strings.Contains(uri, "/response-streaming-invocations") != (want.mode == "STREAM") {
		t.Errorf("%s is invoked by %s", name, uri)
	}
	if at(integration, "Type") != "AWS_PROXY" || method.Properties["AuthorizationType"] != "NONE" {
		t.Errorf("%s is a %v, authorized by %v", name, at(integration, "Type"), method.Properties["AuthorizationType"])
	}
}

func TestGatewayErrorsHaveAPIFormat(t *testing.T) {
	made := synthesize(t, contextOfChoices)
	statuses := map[string]string{
		"MISSING_AUTHENTICATION_TOKEN": "404", "INVALID_SIGNATURE": "404", "EXPIRED_TOKEN": "404",
		"RESOURCE_NOT_FOUND": "404",
		"REQUEST_TOO_LARGE":  "413", "THROTTLED": "429", "QUOTA_EXCEEDED": "429",
		"INTEGRATION_TIMEOUT": "504", "INTEGRATION_FAILURE": "502", "API_CONFIGURATION_ERROR": "500", "DEFAULT_4XX": "",
		"DEFAULT_5XX": "",
	}
	names := map[string]string{}
	for id, api := range made.of(t, "AWS::ApiGateway::RestApi") {
		names[id] = strings.TrimPrefix(api.Properties["Name"].(string), "cutroom-dev-")
	}
	seen := map[string]int{}
	for _, response := range made.of(t, "AWS::ApiGateway::GatewayResponse") {
		kind := response.Properties["ResponseType"].(string)
		seen[kind]++
		status, _ := response.Properties["StatusCode"].(string)
		if want, ok := statuses[kind]; !ok || status != want {
			t.Errorf("%s has the status %q, want %q", kind, status, want)
		}
		headers, _ := response.Properties["ResponseParameters"].(map[string]any)
		checkGatewayHeaders(t, kind, status, headers)
		var body map[string]any
		if err := json.Unmarshal([]byte(at(response.Properties, "ResponseTemplates", "application/json").(string)),
			&body); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		api, _ := at(response.Properties, "RestApiId", "Ref").(string)
		checkGatewayBody(t, names[api], kind, body)
	}
	for kind := range statuses {
		if seen[kind] != 2 {
			t.Errorf("%d APIs have a response for %s, want 2", seen[kind], kind)
		}
	}
}

func checkGatewayHeaders(t *testing.T, kind, status string, headers map[string]any) {
	t.Helper()
	if headers["gatewayresponse.header.Access-Control-Allow-Origin"] != "'https://app.example.com'" {
		t.Errorf("%s has the headers %v", kind, headers)
	}
	for name, value := range headers {
		// AWS documents the syntax: constants in quotes, or parameters of the request.
		text, _ := value.(string)
		if !regexp.MustCompile(`^('[^']*'|method\.request\.(header|querystring|path)\..+)$`).MatchString(text) {
			t.Errorf("%s maps %s to %v", kind, name, value)
		}
	}
	if _, ok := headers["gatewayresponse.header.Retry-After"]; ok != (status == "429") {
		t.Errorf("%s has a Retry-After: %t", kind, ok)
	}
}

// checkGatewayBody checks that the body of API Gateway's own responses has the API's error format.
func checkGatewayBody(t *testing.T, api, kind string, body map[string]any) {
	t.Helper()
	switch api {
	case "media":
		detail, _ := body["detail"].(string)
		if detail == "" || len(body) != 1 {
			t.Errorf("%s of the media service is %v", kind, body)
		}
		if kind == "REQUEST_TOO_LARGE" && !strings.Contains(detail, "/v1/files") {
			t.Errorf("%s does not name the route for large files: %s", kind, detail)
		}
	case "inference":
		failure, _ := body["error"].(map[string]any)
		if len(body) != 1 || len(failure) != 4 || failure["message"] == "" || failure["type"] == "" {
			t.Errorf("%s of the inference gateway is %v", kind, body)
		}
	default:
		t.Errorf("%s belongs to the API %q", kind, api)
	}
}

func TestAPIsAreLoggedAndThrottled(t *testing.T) {
	made := synthesize(t, contextOfChoices)
	made.AllResourcesProperties(jsii.String("AWS::ApiGateway::Stage"), map[string]any{
		"StageName":        "live",
		"AccessLogSetting": assertions.Match_ObjectLike(&map[string]any{"Format": accessLogFormat}),
		"MethodSettings": []any{assertions.Match_ObjectLike(&map[string]any{
			"ResourcePath": "/*", "HttpMethod": "*", "ThrottlingRateLimit": 20, "ThrottlingBurstLimit": 30,
			"LoggingLevel": "OFF", "DataTraceEnabled": false,
		})},
	})
	for _, secret := range []string{"header", "querystring", "body", "context.path", "apiKey"} {
		if strings.Contains(accessLogFormat, secret) {
			t.Errorf("the access log has %s", secret)
		}
	}
}

func TestCustomDomainsAreUsed(t *testing.T) {
	const certificate = "arn:aws:acm:eu-central-1:123456789012:certificate/1"
	context := map[string]any{"worker": "none", "watch": "off", "mediaDomain": "media.example.com", "mediaCertificate": certificate}
	for _, urls := range []string{"off", "on"} {
		context["defaultUrls"] = urls
		made := synthesize(t, context)
		if outputs := fmt.Sprint(*made.FindOutputs(jsii.String("*"), nil)); strings.Contains(outputs, "Ref:MediaApi") {
			t.Errorf("the outputs have the default URL: %s", outputs)
		}
		for id, rest := range made.of(t, "AWS::ApiGateway::RestApi") {
			if off := rest.Properties["DisableExecuteApiEndpoint"] == true; off != (urls == "off" && strings.HasPrefix(id, "Media")) {
				t.Errorf("defaultUrls=%s: %s responds only at its domain: %t", urls, id, off)
			}
		}
	}
	made := synthesize(t, context)
	made.ResourceCountIs(jsii.String("AWS::ApiGateway::DomainName"), jsii.Number(1))
	made.HasResourceProperties(jsii.String("AWS::ApiGateway::DomainName"), map[string]any{
		"DomainName": "media.example.com", "RegionalCertificateArn": certificate, "SecurityPolicy": "TLS_1_2",
	})
	made.HasOutput(jsii.String("MediaUrl"), map[string]any{"Value": "https://media.example.com"})
}
