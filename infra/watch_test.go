package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/platform/httpserver"
)

// Alarms are billed per metric. Monitoring must not cost more than the service.
func TestMonitoringCostsLittle(t *testing.T) {
	made := synthesize(t, map[string]any{"workerImage": "worker"})
	metrics := 0
	for id, alarm := range made.of(t, "AWS::CloudWatch::Alarm") {
		if alarm.Properties["AlarmDescription"] == "" {
			t.Errorf("%s does not describe its meaning", id)
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
	if metrics > 17 {
		t.Errorf("the alarms look at %d metrics", metrics)
	}
	made.ResourceCountIs(jsii.String("AWS::SNS::Topic"), jsii.Number(0))
}

// alarmOf returns the properties of the named alarm in stage dev.
func alarmOf(t *testing.T, made template, name string) map[string]any {
	t.Helper()
	for _, alarm := range made.of(t, "AWS::CloudWatch::Alarm") {
		if alarm.Properties["AlarmName"] == "cutroom-dev-"+name {
			return alarm.Properties
		}
	}
	t.Fatalf("no alarm %s", name)
	return nil
}

func containersOf(t *testing.T) template {
	t.Helper()
	return synthesize(t, map[string]any{
		"ingest": "fargate", "realtime": "true", "workerImage": "worker", "ingestImage": "media", "realtimeImage": "realtime",
		"realtimeDomain": "live.example.com", "realtimeCertificate": "arn:aws:acm:eu-central-1:111122223333:certificate/1",
		"mediaDomain": "media.example.com", "mediaCertificate": "arn:aws:acm:eu-central-1:111122223333:certificate/2",
		"ingestTasks": "3", "realtimeTasks": "2",
	})
}

// A load balancer that reuses a connection while its server closes it responds with 502.
func TestServersKeepIdleConnectionsLongerThanBalancers(t *testing.T) {
	for id, balancer := range containersOf(t).of(t, "AWS::ElasticLoadBalancingV2::LoadBalancer") {
		found := false
		for _, attribute := range list(balancer.Properties["LoadBalancerAttributes"]) {
			if at(attribute, "Key") == "idle_timeout.timeout_seconds" {
				seconds, err := strconv.Atoi(at(attribute, "Value").(string))
				found = err == nil && time.Duration(seconds)*time.Second < httpserver.IdleTime
			}
		}
		if !found {
			t.Errorf("%s keeps idle connections as long as the servers or longer", id)
		}
	}
}

// If containers serve the APIs, the alarms watch their load balancers instead of API Gateway and the unused
// functions.
func TestLoadBalancersHaveAlarms(t *testing.T) {
	made := containersOf(t)
	for name, metrics := range map[string][]string{
		"media-errors":       {"HTTPCode_ELB_5XX_Count", "MediaErrors"},
		"submission-latency": {"TargetResponseTime"},
		"media-unhealthy":    {"HealthyHostCount", "UnHealthyHostCount"},
		"realtime-errors":    {"HTTPCode_ELB_5XX_Count", "HTTPCode_Target_5XX_Count"},
		"realtime-latency":   {"TargetResponseTime"},
		"realtime-unhealthy": {"HealthyHostCount", "UnHealthyHostCount"},
	} {
		alarm := alarmOf(t, made, name)
		var watched []string
		if metric, ok := alarm["MetricName"].(string); ok {
			watched = append(watched, metric)
		}
		for _, query := range list(alarm["Metrics"]) {
			if metric, ok := at(query, "MetricStat", "Metric", "MetricName").(string); ok {
				watched = append(watched, metric)
			}
		}
		slices.Sort(watched)
		if !slices.Equal(watched, metrics) {
			t.Errorf("%s watches %v, want %v", name, watched, metrics)
		}
		if silent := alarm["TreatMissingData"] == "breaching"; silent != strings.HasSuffix(name, "-unhealthy") {
			t.Errorf("%s takes missing data as %v", name, alarm["TreatMissingData"])
		}
	}
	tasks := map[any]any{}
	for _, service := range made.of(t, "AWS::ECS::Service") {
		tasks[service.Properties["ServiceName"]] = service.Properties["DesiredCount"]
	}
	if tasks["cutroom-dev-media"] != 3.0 || tasks["cutroom-dev-realtime"] != 2.0 {
		t.Errorf("the tasks are %v", tasks)
	}
}

// Rejecting an image edit while a worker starts is normal for an idle service. Every log counts
// these rejections separately.
func TestColdRejectionsAreNotErrors(t *testing.T) {
	for name, c := range map[string]struct {
		made template
		want map[string]string
	}{
		"functions": {synthesize(t, map[string]any{"workerImage": "worker"}), map[string]string{
			"MediaErrorsFilter":  `{ ($.status = "5*") && (($.status != "503") || ($.resource != "/v1/generate/{id}")) }`,
			"ImageErrorsFilter":  `{ ($.msg = "request") && ($.status = 503) && ($.refusal NOT EXISTS) }`,
			"ColdRefusalsFilter": `{ ($.refusal = "no_worker") }`,
		}},
		"containers": {containersOf(t), map[string]string{
			"MediaErrorsFilter":  `{ ($.msg = "request") && ($.status >= 500) && ($.refusal NOT EXISTS) }`,
			"ColdRefusalsFilter": `{ ($.refusal = "no_worker") }`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for id, filter := range c.made.of(t, "AWS::Logs::MetricFilter") {
				got[id[:len(id)-8]], _ = filter.Properties["FilterPattern"].(string)
				made, _ := list(filter.Properties["MetricTransformations"])[0].(map[string]any)
				// With a default value, the metric would be billed for every hour.
				if made["MetricNamespace"] != "Cutroom/dev" || made["DefaultValue"] != nil {
					t.Errorf("%s makes %v", id, made)
				}
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("the filters are %v", got)
			}
		})
	}
}

func TestWorkersAcceptNoConnections(t *testing.T) {
	made := synthesize(t, map[string]any{"workerImage": "worker"})
	for _, group := range made.of(t, "AWS::EC2::SecurityGroup") {
		if group.Properties["SecurityGroupIngress"] != nil {
			t.Errorf("workers accept connections: %v", group.Properties["SecurityGroupIngress"])
		}
	}
}
