package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// With a canary, the APIs call aliases, which CodeDeploy moves and which it moves back if an alarm fires.
func TestBrokenFunctionsAreRolledBack(t *testing.T) {
	made := synthesize(t, map[string]any{"rollout": "canary", "workerImage": "worker"})
	for id, method := range made.of(t, "AWS::ApiGateway::Method") {
		if uri := fmt.Sprint(at(method.Properties, "Integration", "Uri")); !strings.Contains(uri, "Alias") {
			t.Errorf("%s calls %s", id, uri)
		}
	}
	for id, group := range made.of(t, "AWS::CodeDeploy::DeploymentGroup") {
		alarms := fmt.Sprint(at(group.Properties, "AlarmConfiguration", "Alarms"))
		ofInference := strings.HasPrefix(id, "InferenceRollout")
		if group.Properties["DeploymentConfigName"] != "CodeDeployDefault.LambdaCanary10Percent10Minutes" ||
			!slices.Contains(list(at(group.Properties, "AutoRollbackConfiguration", "Events")), any("DEPLOYMENT_STOP_ON_ALARM")) ||
			strings.Contains(alarms, "MediaErrorsAlarm") == ofInference || strings.Contains(alarms, "InferenceErrorsAlarm") != ofInference {
			t.Errorf("%s is %v", id, group.Properties)
		}
	}
	aliases, groups := made.of(t, "AWS::Lambda::Alias"), made.of(t, "AWS::CodeDeploy::DeploymentGroup")
	if len(aliases) != 10 || len(groups) != len(aliases) {
		t.Errorf("%d aliases, %d deployment groups", len(aliases), len(groups))
	}
	for id, alias := range aliases {
		if group := fmt.Sprint(at(alias.UpdatePolicy, "CodeDeployLambdaAliasUpdate", "DeploymentGroupName")); !strings.Contains(group, "Rollout") {
			t.Errorf("%s is moved by %s", id, group)
		}
	}
	synthesize(t, nil).ResourceCountIs(jsii.String("AWS::Lambda::Alias"), jsii.Number(0))
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
