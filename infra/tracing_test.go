package main

import (
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// Traces have a price, so that only who asks for them has them, and then all parts
// of a job's way take part.
func TestTracesAreAnOption(t *testing.T) {
	for tracing, want := range map[string]bool{"off": false, "on": true} {
		made := synthesize(t, map[string]any{"watch": "off", "workerImage": "worker", "tracing": tracing})
		for id, f := range made.of(t, "AWS::Lambda::Function") {
			variable := at(f.Properties, "Environment", "Variables", "CUTROOM_TRACING")
			if active := at(f.Properties, "TracingConfig", "Mode") == "Active"; active != want || (variable == "xray") != want {
				t.Errorf("tracing %s: %s is traced: %t, told %v", tracing, id, active, variable)
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
			told := false
			for _, container := range list(at(task.Properties, "ContainerDefinitions")) {
				for _, variable := range list(at(container, "Environment")) {
					told = told || at(variable, "Name") == "CUTROOM_TRACING" && at(variable, "Value") == "xray"
				}
			}
			if told != want {
				t.Errorf("tracing %s: %s is told: %t", tracing, id, told)
			}
		}
		sends := map[string]bool{}
		for id, policy := range made.of(t, "AWS::IAM::Policy") {
			for _, statement := range list(at(policy.Properties, "PolicyDocument", "Statement")) {
				for _, action := range list(at(statement, "Action")) {
					sends[id] = sends[id] || action == "xray:PutTraceSegments"
				}
			}
		}
		for id, allowed := range sends {
			ours := strings.Contains(id, "WorkerTaskRole") || strings.HasPrefix(id, "StateMachineRole") ||
				strings.HasPrefix(id, "JobsRole")
			if ours && allowed != want {
				t.Errorf("tracing %s: %s may send traces: %t", tracing, id, allowed)
			}
		}
		rules := 0
		if want {
			rules = 2
		}
		made.ResourceCountIs(jsii.String("AWS::XRay::SamplingRule"), jsii.Number(rules))
	}
}
