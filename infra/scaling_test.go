package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// Only the function scale sets the number of workers, once a minute. Alarms do not, because queue
// metrics lag and an alarm repeats its action as long as it lasts.
func TestWorkersAreScaledEveryMinute(t *testing.T) {
	for name, c := range map[string]struct {
		context map[string]any
		rules   map[string]string
		cluster string
	}{
		"preview workers": {
			contextOfChoices,
			map[string]string{"MIN": "0", "MAX": "7", "BACKLOG": "2", "IDLE": "10"}, "cutroom-dev",
		},
		"GPUs": {
			map[string]any{"gpu": "true", "gpu.min": "1", "gpu.max": "5", "gpu.backlog": "3", "gpu.idle": "20"},
			map[string]string{"MIN": "1", "MAX": "5", "BACKLOG": "3", "IDLE": "20"}, "cutroom-dev-gpu",
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := synthesize(t, c.context)
			for _, kind := range []string{"AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy"} {
				made.ResourceCountIs(jsii.String(kind), jsii.Number(0))
			}
			for id, alarm := range made.of(t, "AWS::CloudWatch::Alarm") {
				for _, action := range list(alarm.Properties["AlarmActions"]) {
					if action != nil && !strings.Contains(fmt.Sprint(action), "Alarms") {
						t.Errorf("%s does more than notify: %v", id, action)
					}
				}
			}
			variables := map[string]any{}
			for _, f := range made.of(t, "AWS::Lambda::Function") {
				if f.Properties["FunctionName"] == "cutroom-dev-scale" {
					maps.Copy(variables, at(f.Properties, "Environment", "Variables").(map[string]any))
				}
			}
			for rule, value := range c.rules {
				if got := variables["CUTROOM_WORKER_"+rule]; got != value {
					t.Errorf("%s is %v, want %s", rule, got, value)
				}
			}
			if variables["CUTROOM_CLUSTER"] != c.cluster {
				t.Errorf("scale manages %v", variables["CUTROOM_CLUSTER"])
			}
			for _, scheduled := range []string{"Scale", "Steps"} {
				made.HasResourceProperties(jsii.String("AWS::Lambda::EventInvokeConfig"), map[string]any{
					"FunctionName":         assertions.Match_ObjectLike(&map[string]any{"Ref": assertions.Match_StringLikeRegexp(jsii.String("^" + scheduled))}),
					"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 300,
				})
			}
			made.HasResourceProperties(jsii.String("AWS::Events::Rule"), map[string]any{
				"Name": "cutroom-dev-scale", "ScheduleExpression": "rate(1 minute)", "State": "ENABLED",
			})
		})
	}
}

// Every program that accepts jobs wakes the workers, because start events of executions are delivered only on a
// best-effort basis.
func TestProgramsThatAcceptJobsWakeWorkers(t *testing.T) {
	made := synthesize(t, contextOfPreviews)
	for _, f := range made.of(t, "AWS::Lambda::Function") {
		name := fmt.Sprint(f.Properties["FunctionName"])
		if name != "cutroom-dev-jobs" && name != "cutroom-dev-images" {
			continue
		}
		if got := at(f.Properties, "Environment", "Variables", "CUTROOM_WAKE_FUNCTION"); got != "cutroom-dev-wake" {
			t.Errorf("%s wakes %v", name, got)
		}
	}
}

func TestBusyWorkerIsNotStopped(t *testing.T) {
	made := synthesize(t, contextOfPreviews)
	service := made.only(t, "AWS::ECS::Service")
	if service["AvailabilityZoneRebalancing"] != "DISABLED" || service["DesiredCount"] != nil {
		t.Errorf("zones are balanced: %v; %v tasks", service["AvailabilityZoneRebalancing"], service["DesiredCount"])
	}
}

// Workers return their jobs when Fargate takes its spare capacity back.
func TestWorkersRunOnSpareCapacity(t *testing.T) {
	made := synthesize(t, contextOfChoices)
	service := made.only(t, "AWS::ECS::Service")
	if service["LaunchType"] != nil || fmt.Sprint(service["CapacityProviderStrategy"]) != "[map[CapacityProvider:FARGATE_SPOT Weight:1]]" {
		t.Errorf("the workers run on %v %v", service["LaunchType"], service["CapacityProviderStrategy"])
	}
	if got := made.only(t, "AWS::ECS::ClusterCapacityProviderAssociations")["CapacityProviders"]; fmt.Sprint(got) != "[FARGATE FARGATE_SPOT]" {
		t.Errorf("the cluster has %v", got)
	}
}
