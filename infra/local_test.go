package main

import (
	"strings"
	"testing"

	"cutroom/functions"
)

// contextOfLocal describes a deployment of local functions.
var contextOfLocal = map[string]any{
	"watch": "off", "worker": "none", "streaming": "off", "stage": "mine",
	"endpoint": "http://host.docker.internal:4566", "publicEndpoint": "http://127.0.0.1:4566",
}

// SAM ignores the API's binary media types. It uses the methods' integrations to decide which bodies are binary, so
// without them every binary upload would fail with 502. APIs in AWS need only the media types.
func TestLocalAPIsAcceptBinaryBodies(t *testing.T) {
	for _, c := range []struct {
		name              string
		context           map[string]any
		handling, content any
	}{
		{"local", contextOfLocal, "CONVERT_TO_BINARY", "*/*"},
		{"buffered in AWS", map[string]any{"watch": "off", "worker": "none", "streaming": "off"}, nil, nil},
		{"streaming in AWS", map[string]any{"watch": "off", "workerImage": "worker"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for id, method := range synthesize(t, c.context).of(t, "AWS::ApiGateway::Method") {
				integration := method.Properties["Integration"]
				if at(integration, "ContentHandling") != c.handling || at(integration, "ContentType") != c.content {
					t.Errorf("%s has %v and %v, want %v and %v", id, at(integration, "ContentHandling"),
						at(integration, "ContentType"), c.handling, c.content)
				}
			}
		})
	}
}

// Local function runners do not resolve references, so all settings are literal in every stage.
func TestLocalFunctionsHaveLiteralSettings(t *testing.T) {
	for _, f := range synthesize(t, contextOfLocal).of(t, "AWS::Lambda::Function") {
		name, _ := f.Properties["FunctionName"].(string)
		if !strings.HasPrefix(name, "cutroom-mine-") {
			t.Errorf("a function has the name %v", f.Properties["FunctionName"])
		}
		variables, _ := at(f.Properties, "Environment", "Variables").(map[string]any)
		for variable, value := range variables {
			if _, plain := value.(string); !plain {
				t.Errorf("%s receives %s as %v", name, variable, value)
			}
		}
		if variables["AWS_ENDPOINT_URL"] != "http://host.docker.internal:4566" {
			t.Errorf("%s calls %v", name, variables["AWS_ENDPOINT_URL"])
		}
	}
}

// Functions that sign URLs know the address at which clients reach the bucket.
func TestSigningFunctionsHaveThePublicEndpoint(t *testing.T) {
	for _, f := range synthesize(t, contextOfLocal).of(t, "AWS::Lambda::Function") {
		name := strings.TrimPrefix(f.Properties["FunctionName"].(string), "cutroom-mine-")
		var want any
		if name == "files" || name == "content" || name == "batches" {
			want = "http://127.0.0.1:4566"
		}
		if got := at(f.Properties, "Environment", "Variables", "CUTROOM_PUBLIC_S3_URL"); got != want {
			t.Errorf("%s receives %v, want %v", name, got, want)
		}
	}
}

// Every function can be invoked locally, even the function wake, although no workers are deployed.
func TestEveryFunctionRunsLocally(t *testing.T) {
	found := map[string]map[string]any{}
	for _, f := range synthesize(t, contextOfLocal).of(t, "AWS::Lambda::Function") {
		variables, _ := at(f.Properties, "Environment", "Variables").(map[string]any)
		found[strings.TrimPrefix(f.Properties["FunctionName"].(string), "cutroom-mine-")] = variables
	}
	for _, name := range functions.Names() {
		if found[name] == nil {
			t.Errorf("%s does not exist", name)
		}
	}
	if wake := found["wake"]; wake["CUTROOM_CLUSTER"] != "cutroom-mine" ||
		wake["CUTROOM_WORKER_SERVICE"] != "cutroom-mine-worker" {
		t.Errorf("wake receives %v", wake)
	}
	// There are no workers to wake.
	if images := found["images"]; images["CUTROOM_WAKE_FUNCTION"] != nil {
		t.Errorf("images wakes %v", images["CUTROOM_WAKE_FUNCTION"])
	}
}
