package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cutroom/functions"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestFunctionsHaveTheRightTimeouts(t *testing.T) {
	made := synthesize(t, map[string]any{"watch": "off", "workerImage": "worker"})
	// Streaming functions have API Gateway's timeout for streams. The timeout of functions for synchronous calls is
	// the calls' maximum wait. All other functions have API Gateway's timeout for buffered responses.
	want := map[string]float64{
		"jobs": 29, "content": 900, "c2pa": 29, "images": 290, "files": 29, "tokens": 29, "models": 29, "quota": 29, "inference": 900,
		"batches": 900, "steps": 900,
		"reaper": 60, "arrived": 60, "expiry": 60, "webhooks": 60, "wake": 60, "scale": 60,
	}
	deployed := made.of(t, "AWS::Lambda::Function")
	if names := functions.Names(); len(deployed) != len(names) || len(want) != len(names) {
		t.Errorf("%d functions are deployed and %d are checked here; the table has %d", len(deployed), len(want), len(names))
	}
	groups := map[string]float64{}
	for id, group := range made.of(t, "AWS::Logs::LogGroup") {
		days, _ := group.Properties["RetentionInDays"].(float64)
		if days == 0 {
			t.Errorf("the log %s is kept forever", id)
		}
		groups[id] = days
	}
	for _, f := range deployed {
		name := strings.TrimPrefix(f.Properties["FunctionName"].(string), "cutroom-dev-")
		if f.Properties["Timeout"] != want[name] {
			t.Errorf("%s has %v s, want %v", name, f.Properties["Timeout"], want[name])
		}
		if f.Properties["Runtime"] != "provided.al2023" || fmt.Sprint(f.Properties["Architectures"]) != "[arm64]" {
			t.Errorf("%s runs on %v %v", name, f.Properties["Runtime"], f.Properties["Architectures"])
		}
		group, _ := at(f.Properties, "LoggingConfig", "LogGroup", "Ref").(string)
		if groups[group] != 30 {
			t.Errorf("the log of %s is kept for %v days, want 30", name, groups[group])
		}
	}
}

func TestFunctionsGetOnlyTheirOwnSettings(t *testing.T) {
	made := synthesize(t, map[string]any{"watch": "off", "workerImage": "worker"})
	for _, f := range made.of(t, "AWS::Lambda::Function") {
		name := strings.TrimPrefix(f.Properties["FunctionName"].(string), "cutroom-dev-")
		variables := at(f.Properties, "Environment", "Variables").(map[string]any)
		if variables["CUTROOM_STAGE"] != "dev" || variables["CUTROOM_FAMILY"] != "gen" {
			t.Errorf("%s has the stage %v and the family %v", name, variables["CUTROOM_STAGE"], variables["CUTROOM_FAMILY"])
		}
		if _, ok := variables["CUTROOM_RESPONSE"]; ok {
			t.Errorf("%s streams, but has the setting for buffered responses", name)
		}
		if _, ok := variables["CUTROOM_SECRET_ARN"]; ok != slices.Contains([]string{"content", "files", "images", "jobs", "tokens", "webhooks"}, name) {
			t.Errorf("%s has the secret: %t", name, ok)
		}
	}
	catalog := copied(t, "../shared/domain/catalog/catalog.yaml")
	made = synthesize(t, map[string]any{"watch": "off", "worker": "none", "streaming": "off", "catalog": catalog})
	for _, f := range made.of(t, "AWS::Lambda::Function") {
		variables := at(f.Properties, "Environment", "Variables").(map[string]any)
		if variables["CUTROOM_RESPONSE"] != "buffered" || variables["CUTROOM_CATALOG"] != "/opt/catalog.json" ||
			variables["CUTROOM_TIERS"] != nil {
			t.Errorf("%v has %v", f.Properties["FunctionName"], variables)
		}
		if layers, _ := f.Properties["Layers"].([]any); len(layers) != 1 {
			t.Errorf("%v lacks the layer of the catalog", f.Properties["FunctionName"])
		}
	}
}

var contextOfPolicies = map[string]any{
	"watch": "off", "realtime": "true", "ingest": "fargate", "realtimeDomain": "realtime.example.com",
	"webrtc": "true", "turn": "turns:turn.example.com:443?transport=tcp, turn:turn.example.com", "turnSecret": turnSecretOfTests,
	"mediaDomain":         "media.example.com",
	"realtimeCertificate": "arn:aws:acm:eu-central-1:123456789012:certificate/1",
	"mediaCertificate":    "arn:aws:acm:eu-central-1:123456789012:certificate/2",
	"workerImage":         "worker", "realtimeImage": "realtime", "ingestImage": "media",
}

// testdata/policies.json lists each role's permissions, so that a diff shows every change.
func TestRolesHaveTheListedPermissions(t *testing.T) {
	holdPolicies(t, synthesize(t, contextOfPolicies), synthesizeGPU(t, nil))
}

// permissions returns a line for each action that a role may perform on a resource.
func (m template) permissions(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, policy := range m.of(t, "AWS::IAM::Policy") {
		roles, _ := policy.Properties["Roles"].([]any)
		for _, role := range roles {
			id, _ := at(role, "Ref").(string)
			statements, _ := at(policy.Properties, "PolicyDocument", "Statement").([]any)
			for _, statement := range statements {
				if at(statement, "Effect") != "Allow" {
					t.Errorf("%s has a statement that allows nothing", id)
				}
				for _, resource := range list(at(statement, "Resource")) {
					for _, action := range list(at(statement, "Action")) {
						lines = append(lines, fmt.Sprintf("%s %s %s", withoutHash(id), action, m.nameOf(resource)))
					}
				}
			}
		}
	}
	return lines
}

// list returns a JSON value as a list. CloudFormation writes a list of one element as the element itself.
func list(value any) []any {
	if values, ok := value.([]any); ok {
		return values
	}
	return []any{value}
}

// withoutHash removes the suffix that CDK adds to a resource's id to make it unique.
func withoutHash(id string) string {
	const hash = 8
	if len(id) > hash &&
		!slices.ContainsFunc([]byte(id[len(id)-hash:]),
			func(c byte) bool { return !strings.ContainsRune("0123456789ABCDEF", rune(c)) }) {
		return id[:len(id)-hash]
	}
	return id
}

func (m template) nameOf(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case map[string]any:
		for _, function := range slices.Sorted(maps.Keys(value)) {
			switch arguments := value[function].(type) {
			case string:
				if strings.HasPrefix(arguments, "AWS::") {
					return arguments[len("AWS::"):]
				}
				return withoutHash(arguments)
			case []any:
				if function == "Fn::GetAtt" {
					return withoutHash(fmt.Sprint(arguments[0]))
				}
				var parts []string
				for _, part := range list(arguments[1]) {
					parts = append(parts, m.nameOf(part))
				}
				return strings.Join(parts, "")
			}
		}
	}
	return fmt.Sprint(value)
}

// copied copies a file into this folder, where a deployment may read it, and returns the copy's name.
func copied(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(".", "copied-*"+filepath.Ext(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file.Name()) })
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(file.Name())
}

// A file that functions could not read stops the deployment.
func TestInvalidDeployerFilesAreNamed(t *testing.T) {
	for _, o := range []options{{Catalog: "permissions.go", Family: "gen"}, {Tiers: "permissions.go"}} {
		if _, err := (&stack{options: o}).newSettings(); err == nil || !strings.Contains(err.Error(), "permissions.go") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
