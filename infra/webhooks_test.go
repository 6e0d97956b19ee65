package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// Only budget warnings and ended jobs with a webhook start the function. Other changes to jobs or usage do not.
func TestWebhooksStartOnlyWhenNeeded(t *testing.T) {
	made := synthesize(t, map[string]any{"worker": "none", "watch": "off"})
	found := map[string]bool{
		`{"dynamodb":{"NewImage":{"part":{"S":["record"]},"status":{"S":["completed","failed"]},` +
			`"webhook":{"S":[{"exists":true}]}}}}`: false,
		`{"dynamodb":{"NewImage":{"part":{"S":["warning"]}}}}`: false,
	}
	for _, mapping := range made.of(t, "AWS::Lambda::EventSourceMapping") {
		filters := list(at(mapping.Properties, "FilterCriteria", "Filters"))
		pattern, _ := at(filters[0], "Pattern").(string)
		if !strings.Contains(pattern, "webhook") && !strings.Contains(pattern, "warning") {
			continue
		}
		if source := at(mapping.Properties, "EventSourceArn", "Fn::GetAtt"); source == nil || list(source)[1] != "StreamArn" {
			t.Errorf("the source is %v", mapping.Properties["EventSourceArn"])
		}
		var got any
		if err := json.Unmarshal([]byte(pattern), &got); err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(got)
		if _, wanted := found[string(text)]; !wanted {
			t.Errorf("a filter is %s", text)
		}
		found[string(text)] = true
	}
	for filter, is := range found {
		if !is {
			t.Errorf("%s starts nothing", filter)
		}
	}
	made.HasResourceProperties(jsii.String("AWS::SQS::Queue"), map[string]any{
		"QueueName": "cutroom-dev-webhooks", "VisibilityTimeout": 360, "FifoQueue": assertions.Match_Absent(),
		"RedrivePolicy": assertions.Match_ObjectLike(&map[string]any{"maxReceiveCount": 10}),
	})
}

// Programs that check or call URLs have the list of private receivers. Programs that call them run in the receivers'
// network.
func TestPrivateWebhookReceiversAreReached(t *testing.T) {
	made := synthesize(t, map[string]any{
		"worker": "none", "watch": "off", "webhookAllow": "10.1.0.0/16,hooks.corp.example",
		"vpc": "vpc-1", "zones": "eu-central-1a", "subnets": "subnet-1", "securityGroups": "sg-1",
	})
	for _, f := range made.of(t, "AWS::Lambda::Function") {
		name := strings.TrimPrefix(f.Properties["FunctionName"].(string), "cutroom-dev-")
		allowed := at(f.Properties, "Environment", "Variables", "CUTROOM_WEBHOOK_ALLOW")
		if has := allowed == "10.1.0.0/16,hooks.corp.example"; has != (name == "jobs" || name == "tokens" || name == "webhooks") {
			t.Errorf("%s receives %v", name, allowed)
		}
		if private := f.Properties["VpcConfig"] != nil; private != (name == "inference" || name == "steps" || name == "webhooks") {
			t.Errorf("%s is in the network: %t", name, private)
		}
	}
}
