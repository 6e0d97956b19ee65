package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// Traces cost money, so they are off by default. When they are on, every program and service that
// handles a job sends them.
func TestTracesAreOptional(t *testing.T) {
	for tracing, made := range map[string]template{"off": containersOf(t), "on": synthesize(t, tracedContext)} {
		want := tracing == "on"
		for id, f := range made.of(t, "AWS::Lambda::Function") {
			if active := at(f.Properties, "TracingConfig", "Mode") == "Active"; active != want {
				t.Errorf("tracing %s: %s is traced: %t", tracing, id, active)
			}
			if variable := at(f.Properties, "Environment", "Variables", "CUTROOM_TRACING"); variable != nil {
				t.Errorf("tracing %s: %s has CUTROOM_TRACING=%v, which it does not read", tracing, id, variable)
			}
		}
		for id, stage := range made.of(t, "AWS::ApiGateway::Stage") {
			if traced := stage.Properties["TracingEnabled"] == true; traced != want {
				t.Errorf("tracing %s: %s is traced: %t", tracing, id, traced)
			}
		}
		for id, machine := range made.of(t, "AWS::StepFunctions::StateMachine") {
			if traced := at(machine.Properties, "TracingConfiguration", "Enabled") == true; traced != want {
				t.Errorf("tracing %s: %s is traced: %t", tracing, id, traced)
			}
		}
		for id, task := range made.of(t, "AWS::ECS::TaskDefinition") {
			set := false
			for _, container := range list(at(task.Properties, "ContainerDefinitions")) {
				for _, variable := range list(at(container, "Environment")) {
					set = set || at(variable, "Name") == "CUTROOM_TRACING" && at(variable, "Value") == "xray"
				}
			}
			if set != want {
				t.Errorf("tracing %s: %s has the setting: %t", tracing, id, set)
			}
		}
		checkSenders(t, made, tracing, want)
		rules := 0
		if want {
			rules = 2
		}
		made.ResourceCountIs(jsii.String("AWS::XRay::SamplingRule"), jsii.Number(rules))
	}
}

// checkSenders checks that, with tracing on, containers may only send spans over OTLP, and that functions and the
// state machine may send segments.
func checkSenders(t *testing.T, made template, tracing string, want bool) {
	t.Helper()
	may := map[string][]string{}
	for id, policy := range made.of(t, "AWS::IAM::Policy") {
		for _, statement := range list(at(policy.Properties, "PolicyDocument", "Statement")) {
			for _, action := range list(at(statement, "Action")) {
				may[id] = append(may[id], fmt.Sprint(action))
			}
		}
	}
	seen := map[string]bool{}
	for id, actions := range may {
		var role string
		for _, r := range []string{"WorkerTaskRole", "MediaTaskRole", "StateMachineRole", "JobsRole"} {
			if strings.HasPrefix(id, r) {
				role = r
			}
		}
		if role == "" {
			continue
		}
		seen[role] = true
		container := strings.Contains(role, "TaskRole")
		for action, allowed := range map[string]bool{
			"xray:PutSpans": want && container, "xray:PutSpansForIndexing": want && container,
			"xray:PutTraceSegments": want && !container,
		} {
			if slices.Contains(actions, action) != allowed {
				t.Errorf("tracing %s: %s may %s: %t", tracing, id, action, !allowed)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("tracing %s: only %v have permissions", tracing, slices.Sorted(maps.Keys(seen)))
	}
}
