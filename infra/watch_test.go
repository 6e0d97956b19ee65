package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/jsii-runtime-go"
)

// Alarms are billed by metric, and a dashboard with more than 50 metrics by month:
// monitoring must not cost more than the service.
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

func TestWorkersAcceptNoConnections(t *testing.T) {
	made := synthesize(t, map[string]any{"workerImage": "worker"})
	for _, group := range made.of(t, "AWS::EC2::SecurityGroup") {
		if group.Properties["SecurityGroupIngress"] != nil {
			t.Errorf("workers accept connections: %v", group.Properties["SecurityGroupIngress"])
		}
	}
}
