package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/platform/httpserver"
)

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

var contextOfContainers = map[string]any{
	"ingest": "fargate", "realtime": "true", "workerImage": "worker", "ingestImage": "media", "realtimeImage": "realtime",
	"realtimeDomain": "live.example.com", "realtimeCertificate": "arn:aws:acm:eu-central-1:111122223333:certificate/1",
	"mediaDomain": "media.example.com", "mediaCertificate": "arn:aws:acm:eu-central-1:111122223333:certificate/2",
	"ingestTasks": "3", "realtimeTasks": "2", "webAcl": aclOfTests,
}

func containersOf(t *testing.T) template {
	t.Helper()
	return synthesize(t, contextOfContainers)
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

// Lambda keeps a failed change of a table until it is a day old. Before that, an alarm on its age fires.
func TestChangesOfTablesAreNotDropped(t *testing.T) {
	made := synthesize(t, contextOfPreviews)
	for id, mapping := range made.of(t, "AWS::Lambda::EventSourceMapping") {
		source, _ := at(mapping.Properties, "EventSourceArn", "Fn::GetAtt").([]any)
		if len(source) < 2 || source[1] != "StreamArn" {
			continue
		}
		for _, limit := range []string{"MaximumRetryAttempts", "MaximumRecordAgeInSeconds"} {
			if n := mapping.Properties[limit]; n != nil && n != -1.0 && at(mapping.Properties, "DestinationConfig", "OnFailure") == nil {
				t.Errorf("%s drops changes: %s is %v", id, limit, n)
			}
		}
	}
	alarm := alarmOf(t, made, "late-events")
	watched := regexp.MustCompile(`MetricName:IteratorAge\S* |Stat:Maximum`).FindAllString(fmt.Sprint(alarm["Metrics"]), -1)
	if len(watched) != 4 || alarm["Threshold"] != 3600000.0 {
		t.Errorf("the alarm watches %v", alarm)
	}
}

// Rejecting an image edit while a worker starts is normal for an idle service. Every log counts
// these rejections separately.
func TestLogsCountErrorsAndThrottles(t *testing.T) {
	for name, c := range map[string]struct {
		made template
		want map[string]string
	}{
		"functions": {synthesize(t, contextOfPreviews), map[string]string{
			"MediaErrorsFilter":  `{ ($.status = "5*") && (($.status != "503") || ($.resource != "/v1/generate/{id}")) }`,
			"ImageErrorsFilter":  `{ ($.msg = "request") && ($.status = 503) && ($.refusal NOT EXISTS) }`,
			"ColdRefusalsFilter": `{ ($.refusal = "no_worker") }`,
			"DeadLettersFilter":  `{ ($.msg = "a queue has given up on a job") || ($.msg = "cannot end an abandoned job") }`,
			// This is Lambda's own status, in the access logs of this stage.
			"MediaThrottlesFilter":     `{ $.integration = "429" }`,
			"InferenceThrottlesFilter": `{ $.integration = "429" }`,
		}},
		"containers": {containersOf(t), map[string]string{
			"MediaErrorsFilter":    `{ ($.msg = "request") && ($.status >= 500) && ($.refusal NOT EXISTS) }`,
			"ColdRefusalsFilter":   `{ ($.refusal = "no_worker") }`,
			"DeadLettersFilter":    `{ ($.msg = "a queue has given up on a job") || ($.msg = "cannot end an abandoned job") }`,
			"MediaThrottlesFilter": `{ $.integration = "429" }`, "InferenceThrottlesFilter": `{ $.integration = "429" }`,
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
	made := synthesize(t, contextOfPreviews)
	for _, group := range made.of(t, "AWS::EC2::SecurityGroup") {
		if group.Properties["SecurityGroupIngress"] != nil {
			t.Errorf("workers accept connections: %v", group.Properties["SecurityGroupIngress"])
		}
	}
}

const topicOfTests = "arn:aws:sns:eu-central-1:111122223333:pager"

// Alarms of both stacks notify the deployer's topic, or the topic of the email address. A budget notifies it too.
func TestAlarmsNotifyOneTopic(t *testing.T) {
	own := map[string]any{"Ref": "Alarms04B5A0BF"}
	for name, c := range map[string]struct {
		context            map[string]any
		service, gpus      any
		subscriber, locked string
	}{
		"email": {map[string]any{"alarmEmail": "ops@example.com", "budget": "100"}, own,
			map[string]any{"Fn::Join": []any{"", []any{"arn:", map[string]any{"Ref": "AWS::Partition"}, ":sns:", map[string]any{"Ref": "AWS::Region"},
				":", map[string]any{"Ref": "AWS::AccountId"}, ":cutroom-dev-alarms"}}}, "EMAIL", "ops@example.com"},
		"topic": {map[string]any{"alarmTopic": topicOfTests, "budget": "100"}, topicOfTests, topicOfTests, "SNS", topicOfTests},
	} {
		t.Run(name, func(t *testing.T) {
			c.context["workerImage"], c.context["gpu"] = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/cutroom/worker:7", "prepare"
			made := synthesize(t, c.context)
			for id, alarm := range made.of(t, "AWS::CloudWatch::Alarm") {
				if actions := list(alarm.Properties["AlarmActions"]); !reflect.DeepEqual(actions, []any{c.service}) {
					t.Errorf("%s notifies %v", id, actions)
				}
			}
			if actions := list(synthesizeGPU(t, c.context).only(t, "AWS::CloudWatch::Alarm")["AlarmActions"]); !reflect.DeepEqual(actions, []any{c.gpus}) {
				t.Errorf("the alarm on GPUs notifies %v", actions)
			}
			budget := made.only(t, "AWS::Budgets::Budget")
			if at(budget, "Budget", "BudgetLimit", "Amount") != 100.0 {
				t.Errorf("the budget is %v", budget)
			}
			for _, notice := range list(budget["NotificationsWithSubscribers"]) {
				if got := list(at(notice, "Subscribers"))[0]; at(got, "SubscriptionType") != c.subscriber || at(got, "Address") != c.locked {
					t.Errorf("the budget notifies %v", got)
				}
			}
		})
	}
}

// A GPU that is prepared and then forgotten raises an alarm after a day. In use, GPUs stop when they are idle.
func TestForgottenGPURaisesAnAlarm(t *testing.T) {
	alarm := synthesizeGPU(t, map[string]any{"gpu": "prepare"}).only(t, "AWS::CloudWatch::Alarm")
	if alarm["AlarmName"] != "cutroom-dev-gpu-prepared" || alarm["Period"].(float64)*alarm["EvaluationPeriods"].(float64) != 24*60*60 ||
		alarm["Statistic"] != "SampleCount" || fmt.Sprint(alarm["Dimensions"]) !=
		"[map[Name:ClusterName Value:cutroom-dev-gpu] map[Name:ServiceName Value:cutroom-dev-gpu-worker]]" {
		t.Errorf("the alarm is %v", alarm)
	}
	for _, context := range []map[string]any{nil, {"gpu": "prepare", "watch": "off"}} {
		synthesizeGPU(t, context).ResourceCountIs(jsii.String("AWS::CloudWatch::Alarm"), jsii.Number(0))
	}
}

const aclOfTests = "arn:aws:wafv2:eu-central-1:111122223333:regional/webacl/calls/1"

func TestWebACLFiltersEveryEntryPoint(t *testing.T) {
	filtered := map[string]bool{}
	for _, association := range containersOf(t).of(t, "AWS::WAFv2::WebACLAssociation") {
		if association.Properties["WebACLArn"] != aclOfTests {
			t.Errorf("the web ACL is %v", association.Properties["WebACLArn"])
		}
		filtered[regexp.MustCompile(`(Media|Inference|Realtime)(Api|Balancer)`).FindString(fmt.Sprint(association.Properties["ResourceArn"]))] = true
	}
	if want := "map[InferenceApi:true MediaApi:true MediaBalancer:true RealtimeBalancer:true]"; fmt.Sprint(filtered) != want {
		t.Errorf("the web ACL filters %v", filtered)
	}
}

// The deployer's tags are on every stack's resources, next to the service's own tags.
func TestDeployersTagsAreOnResources(t *testing.T) {
	for name, made := range map[string]template{
		"service": synthesize(t, contextOfChoices),
		"GPUs":    synthesizeGPU(t, map[string]any{"tags": "team=media,cost-center=4=2"}),
	} {
		tags := map[any]any{}
		for _, tag := range list(made.only(t, "AWS::ECS::Cluster")["Tags"]) {
			tags[at(tag, "Key")] = at(tag, "Value")
		}
		if want := map[any]any{"service": "cutroom", "stage": "dev", "team": "media", "cost-center": "4=2"}; !maps.Equal(tags, want) {
			t.Errorf("%s: the tags are %v", name, tags)
		}
	}
}
