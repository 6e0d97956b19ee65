package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// With a canary, APIs, events and other functions call aliases. CodeDeploy moves them, and moves them back if an alarm fires.
func TestBrokenFunctionsAreRolledBack(t *testing.T) {
	made := synthesize(t, map[string]any{"rollout": "canary", "workerImage": "worker"})
	callers := map[string]any{}
	for id, method := range made.of(t, "AWS::ApiGateway::Method") {
		callers[id] = at(method.Properties, "Integration", "Uri")
	}
	for id, mapping := range made.of(t, "AWS::Lambda::EventSourceMapping") {
		callers[id] = mapping.Properties["FunctionName"]
	}
	for id, rule := range made.of(t, "AWS::Events::Rule") {
		callers[id] = at(list(rule.Properties["Targets"])[0], "Arn")
	}
	callers["bucket"] = at(list(at(made.only(t, "AWS::S3::Bucket"), "NotificationConfiguration", "LambdaConfigurations"))[0], "Function")
	for id, called := range callers {
		if !strings.Contains(fmt.Sprint(called), "Alias") {
			t.Errorf("%s calls %s", id, called)
		}
	}
	for id, f := range made.of(t, "AWS::Lambda::Function") {
		for _, name := range []string{"STEPS", "WAKE"} {
			if called, ok := at(f.Properties, "Environment", "Variables", "CUTROOM_"+name+"_FUNCTION").(string); ok && !strings.HasSuffix(called, ":live") {
				t.Errorf("%s calls %s", id, called)
			}
		}
	}
	ofEvents := made.only(t, "AWS::CodeDeploy::DeploymentConfig")
	if canary := at(ofEvents, "TrafficRoutingConfig", "TimeBasedCanary"); at(canary, "CanaryPercentage") != 90.0 || at(canary, "CanaryInterval") != 10.0 {
		t.Errorf("events move by %v", ofEvents)
	}
	for id, group := range made.of(t, "AWS::CodeDeploy::DeploymentGroup") {
		name, _, _ := strings.Cut(id, "Rollout")
		alarm, config := "MediaErrorsAlarm", "CodeDeployDefault.LambdaCanary10Percent10Minutes"
		if internalConcurrency[strings.ToLower(name)] > 0 {
			alarm, config = "InternalErrorsAlarm", "map[Ref:RolloutOfEvents"
		} else if name == "Inference" {
			alarm = "InferenceErrorsAlarm"
		}
		alarms := list(at(group.Properties, "AlarmConfiguration", "Alarms"))
		if !strings.HasPrefix(fmt.Sprint(group.Properties["DeploymentConfigName"]), config) ||
			!slices.Contains(list(at(group.Properties, "AutoRollbackConfiguration", "Events")), any("DEPLOYMENT_STOP_ON_ALARM")) ||
			len(alarms) != 1 || !strings.Contains(fmt.Sprint(alarms), alarm) {
			t.Errorf("%s is %v", id, group.Properties)
		}
	}
	aliases, groups := made.of(t, "AWS::Lambda::Alias"), made.of(t, "AWS::CodeDeploy::DeploymentGroup")
	if len(aliases) != len(made.of(t, "AWS::Lambda::Function")) || len(groups) != len(aliases) {
		t.Errorf("%d aliases, %d deployment groups", len(aliases), len(groups))
	}
	for id, alias := range aliases {
		if group := fmt.Sprint(at(alias.UpdatePolicy, "CodeDeployLambdaAliasUpdate", "DeploymentGroupName")); !strings.Contains(group, "Rollout") {
			t.Errorf("%s is moved by %s", id, group)
		}
	}
	if n := len(list(alarmOf(t, made, "internal-errors")["Metrics"])); n != 1+len(internalConcurrency) {
		t.Errorf("the alarm on events has %d metrics", n)
	}
	made.HasResourceProperties(jsii.String("AWS::Lambda::EventInvokeConfig"), map[string]any{
		"Qualifier":            map[string]any{"Fn::Select": assertions.Match_AnyValue()}, // of the alias's ARN
		"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 300,
	})
	direct := synthesize(t, contextOfPreviews)
	direct.ResourceCountIs(jsii.String("AWS::Lambda::Alias"), jsii.Number(0))
	// A mapping with another id would read the streams from the start again.
	if want, got := direct.of(t, "AWS::Lambda::EventSourceMapping"), made.of(t, "AWS::Lambda::EventSourceMapping"); !slices.Equal(sortedKeys(want), sortedKeys(got)) {
		t.Errorf("the mappings are %v, want %v", sortedKeys(got), sortedKeys(want))
	}
}

// With rollout=force, a firing alarm does not stop the deployment that cures it.
func TestForcedRolloutIgnoresAlarms(t *testing.T) {
	made := synthesize(t, map[string]any{"rollout": "force", "workerImage": "worker"})
	for id, group := range made.of(t, "AWS::CodeDeploy::DeploymentGroup") {
		if group.Properties["DeploymentConfigName"] != "CodeDeployDefault.LambdaAllAtOnce" || at(group.Properties, "AlarmConfiguration", "Enabled") != false {
			t.Errorf("%s is %v", id, group.Properties)
		}
	}
}

// ECS rolls a deployment back if one of its alarms fires. Each of the alarms exists.
func TestBrokenContainersAreRolledBack(t *testing.T) {
	service := containersOf(t)
	for name, made := range map[string]template{"containers": service, "GPUs": synthesizeGPU(t, nil)} {
		for id, r := range made.of(t, "AWS::ECS::Service") {
			alarms := at(r.Properties, "DeploymentConfiguration", "Alarms")
			if at(alarms, "Enable") != true || at(alarms, "Rollback") != true {
				t.Errorf("%s: %s has %v", name, id, alarms)
			}
			for _, alarm := range list(at(alarms, "AlarmNames")) {
				alarmOf(t, service, strings.TrimPrefix(alarm.(string), "cutroom-dev-"))
			}
		}
	}
	for _, r := range synthesize(t, map[string]any{"watch": "off", "workerImage": "worker"}).of(t, "AWS::ECS::Service") {
		if at(r.Properties, "DeploymentConfiguration", "Alarms", "Enable") == true {
			t.Error("a deployment waits for alarms that do not exist")
		}
	}
}
