package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// Alarms are billed by the metric, and a dashboard with more than 50 metrics by
// the month: what watches must not come to cost more than what it watches.
func TestWatchingCostsLittle(t *testing.T) {
	made := synthesize(t, map[string]any{"workerImage": "worker"})
	metrics := 0
	for id, alarm := range made.of(t, "AWS::CloudWatch::Alarm") {
		if alarm.Properties["AlarmDescription"] == "" {
			t.Errorf("%s does not say what it means", id)
		}
		if alarm.Properties["MetricName"] != nil {
			metrics++
		}
		for _, query := range list(alarm.Properties["Metrics"]) {
			if at(query, "MetricStat") != nil {
				metrics++
			}
		}
	}
	if metrics > 23 {
		t.Errorf("the alarms look at %d metrics", metrics)
	}
	for _, dashboard := range made.of(t, "AWS::CloudWatch::Dashboard") {
		body, err := json.Marshal(dashboard.Properties["DashboardBody"])
		if err != nil {
			t.Fatal(err)
		}
		if shown := strings.Count(string(body), `\"AWS/`); shown == 0 || shown > 50 {
			t.Errorf("the dashboard has %d metrics", shown)
		}
	}
	made.ResourceCountIs(jsii.String("AWS::SNS::Topic"), jsii.Number(0))
}

// Workers begin at none and go back to it, and a deploy leaves their number as it
// is.
func TestWorkersScaleFromNone(t *testing.T) {
	made := synthesize(t, map[string]any{"workerImage": "worker", "workerMax": "7"})
	made.HasResourceProperties(jsii.String("AWS::ApplicationAutoScaling::ScalableTarget"),
		map[string]any{"MinCapacity": 0, "MaxCapacity": 7})
	for _, service := range made.of(t, "AWS::ECS::Service") {
		if service.Properties["DesiredCount"] != nil {
			t.Errorf("a deploy sets the number of workers to %v", service.Properties["DesiredCount"])
		}
	}
	for _, policy := range made.of(t, "AWS::ApplicationAutoScaling::ScalingPolicy") {
		kind := at(policy.Properties, "StepScalingPolicyConfiguration", "AdjustmentType")
		for _, step := range list(at(policy.Properties, "StepScalingPolicyConfiguration", "StepAdjustments")) {
			if by, _ := at(step, "ScalingAdjustment").(float64); (kind == "ExactCapacity") != (by == 0) || by < 0 {
				t.Errorf("a %v policy scales by %v: it stops workers that are busy", kind, by)
			}
		}
	}
	made.HasResourceProperties(jsii.String("AWS::Events::Rule"), map[string]any{"Name": "cutroom-dev-executions-begun"})
	for _, group := range made.of(t, "AWS::EC2::SecurityGroup") {
		if group.Properties["SecurityGroupIngress"] != nil {
			t.Errorf("workers accept connections: %v", group.Properties["SecurityGroupIngress"])
		}
	}
}
