package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/stepfn"
)

func TestTablesFollowTheSchema(t *testing.T) {
	for stage, protected := range map[string]bool{"dev": false, "prod": true} {
		made := synthesize(t, map[string]any{"stage": stage, "worker": "none", "watch": "off"})
		tables := made.of(t, "AWS::DynamoDB::GlobalTable")
		if len(tables) != len(dynamo.Tables()) {
			t.Errorf("there are %d tables, want %d", len(tables), len(dynamo.Tables()))
		}
		policy := map[bool]string{true: "Retain", false: "Delete"}[protected]
		for _, want := range dynamo.Tables() {
			name := "cutroom-" + stage + "-" + want.Name
			properties := map[string]any{
				"TableName": name, "BillingMode": "PAY_PER_REQUEST",
				"Replicas": []any{assertions.Match_ObjectLike(&map[string]any{
					"PointInTimeRecoverySpecification": map[string]any{"PointInTimeRecoveryEnabled": true},
					"DeletionProtectionEnabled":        protected,
				})},
			}
			if want.TTL != "" {
				properties["TimeToLiveSpecification"] = map[string]any{"AttributeName": want.TTL, "Enabled": true}
			}
			if want.StreamsOldImages {
				properties["StreamSpecification"] = map[string]any{"StreamViewType": "OLD_IMAGE"}
			}
			if want.StreamsNewImages {
				properties["StreamSpecification"] = map[string]any{"StreamViewType": "NEW_IMAGE"}
			}
			if len(want.Indexes) > 0 {
				var indexes []any
				for _, index := range want.Indexes {
					indexes = append(indexes, assertions.Match_ObjectLike(&map[string]any{"IndexName": index.Name}))
				}
				properties["GlobalSecondaryIndexes"] = indexes
			}
			made.HasResourceProperties(jsii.String("AWS::DynamoDB::GlobalTable"), properties)
		}
		for id, table := range tables {
			if table.DeletionPolicy != policy || table.UpdateReplacePolicy != policy {
				t.Errorf("%s in %s has the deletion policy %s, want %s", id, stage, table.DeletionPolicy, policy)
			}
		}
	}
}

func TestBlobsArePrivate(t *testing.T) {
	made := synthesize(t,
		map[string]any{"worker": "none", "watch": "off", "origins": "https://a.example.com,https://b.example.com"})
	made.ResourceCountIs(jsii.String("AWS::S3::Bucket"), jsii.Number(1))
	made.HasResourceProperties(jsii.String("AWS::S3::Bucket"), map[string]any{
		"PublicAccessBlockConfiguration": map[string]any{"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true},
		"BucketEncryption":               map[string]any{"ServerSideEncryptionConfiguration": []any{map[string]any{"ServerSideEncryptionByDefault": map[string]any{"SSEAlgorithm": "AES256"}}}},
		"OwnershipControls":              map[string]any{"Rules": []any{map[string]any{"ObjectOwnership": "BucketOwnerEnforced"}}},
		"LifecycleConfiguration": map[string]any{"Rules": []any{
			map[string]any{"Id": "jobs", "Prefix": "jobs/", "ExpirationInDays": 2, "Status": "Enabled"},
			map[string]any{"Id": "batches", "Prefix": "batches/", "ExpirationInDays": 3, "Status": "Enabled"},
			map[string]any{"Id": "broken-uploads", "AbortIncompleteMultipartUpload": map[string]any{"DaysAfterInitiation": 1},
				"Status": "Enabled"},
		}},
		"CorsConfiguration": map[string]any{"CorsRules": []any{
			assertions.Match_ObjectLike(&map[string]any{
				"AllowedMethods": []any{"PUT"}, "AllowedOrigins": []any{"https://a.example.com", "https://b.example.com"},
			}),
			assertions.Match_ObjectLike(&map[string]any{
				"AllowedMethods": []any{"GET", "HEAD"}, "AllowedOrigins": []any{"*"},
			}),
		}},
		"NotificationConfiguration": map[string]any{"LambdaConfigurations": []any{assertions.Match_ObjectLike(&map[string]any{
			"Event": "s3:ObjectCreated:*", "Filter": map[string]any{"S3Key": map[string]any{"Rules": []any{map[string]any{"Name": "prefix", "Value": "files/"}, map[string]any{"Name": "suffix", "Value": ".signed"}}}},
		})}},
	})
	// Blobs are accessible only over a recent version of TLS.
	made.HasResourceProperties(jsii.String("AWS::S3::BucketPolicy"),
		map[string]any{"PolicyDocument": map[string]any{"Statement": assertions.Match_ArrayWith(&[]any{
			assertions.Match_ObjectLike(
				&map[string]any{"Effect": "Deny", "Action": "s3:*",
					"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}}}),
		})}})
}

// If content redirects to the bucket, CORS must allow all origins, because browsers send no origin after a redirect.
func TestBrowsersFollowRedirectsToTheBucket(t *testing.T) {
	made := synthesize(t, contextOfChoices)
	made.HasResourceProperties(jsii.String("AWS::S3::Bucket"),
		map[string]any{"CorsConfiguration": map[string]any{"CorsRules": []any{
			assertions.Match_ObjectLike(
				&map[string]any{"AllowedMethods": []any{"PUT"}, "AllowedOrigins": []any{"https://app.example.com"}}),
			assertions.Match_ObjectLike(
				&map[string]any{"AllowedMethods": []any{"GET", "HEAD"}, "AllowedOrigins": []any{"*"},
					"AllowedHeaders": []any{"*"}}),
		}}})
}

func TestQueuesGiveUpAfterTenReceives(t *testing.T) {
	made := synthesize(t, map[string]any{"worker": "none", "watch": "off"})
	made.ResourceCountIs(jsii.String("AWS::SQS::Queue"), jsii.Number(6))
	made.AllResourcesProperties(jsii.String("AWS::SQS::Queue"), map[string]any{"SqsManagedSseEnabled": true})
	for _, lane := range []string{"video", "image"} {
		made.HasResourceProperties(jsii.String("AWS::SQS::Queue"), map[string]any{
			"QueueName": "cutroom-dev-" + lane, "VisibilityTimeout": 60, "FifoQueue": assertions.Match_Absent(),
			"RedrivePolicy": assertions.Match_ObjectLike(&map[string]any{"maxReceiveCount": 10}),
		})
		made.HasResourceProperties(jsii.String("AWS::SQS::Queue"), map[string]any{
			"QueueName": "cutroom-dev-" + lane + "-dead-letters", "MessageRetentionPeriod": 14 * 24 * 60 * 60,
		})
	}
}

func TestStateMachineRunsTheJobsDefinition(t *testing.T) {
	made := synthesize(t, map[string]any{"worker": "none", "watch": "off"})
	for _, machine := range made.of(t, "AWS::StepFunctions::StateMachine") {
		definition, err := stepfn.Definition("PARTITION", "cutroom-dev-jobs")
		if err != nil {
			t.Fatal(err)
		}
		// CloudFormation inserts the partition.
		var deployed strings.Builder
		for _, part := range list(at(machine.Properties["DefinitionString"], "Fn::Join")) {
			for _, piece := range list(part) {
				if text, ok := piece.(string); ok {
					deployed.WriteString(text)
				} else if at(piece, "Ref") == "AWS::Partition" {
					deployed.WriteString("PARTITION")
				}
			}
		}
		if deployed.String() != definition {
			t.Errorf("the definition differs: %s", deployed.String())
		}
		if !json.Valid([]byte(definition)) || machine.Properties["StateMachineType"] != "STANDARD" {
			t.Error("the state machine is not STANDARD, or its definition is not JSON")
		}
	}
	made.HasResourceProperties(jsii.String("AWS::Events::Rule"), map[string]any{"EventPattern": map[string]any{
		"source": []any{"aws.states"}, "detail-type": []any{"Step Functions Execution Status Change"},
		"detail": assertions.Match_ObjectLike(&map[string]any{"status": []any{"FAILED", "TIMED_OUT", "ABORTED"}}),
	}})
}

// With keepVersions, deleted and replaced objects remain for some days, so that they can be brought back.
func TestBucketKeepsVersionsForDays(t *testing.T) {
	made := synthesize(t, contextOfChoices)
	bucket := made.only(t, "AWS::S3::Bucket")
	rules := list(at(bucket, "LifecycleConfiguration", "Rules"))
	last := rules[len(rules)-1]
	if at(bucket, "VersioningConfiguration", "Status") != "Enabled" || at(last, "ExpiredObjectDeleteMarker") != true ||
		at(last, "NoncurrentVersionExpiration", "NoncurrentDays") != 7.0 {
		t.Errorf("the bucket has %v and %v", bucket["VersioningConfiguration"], last)
	}
	if at(synthesize(t, contextOfPreviews).only(t, "AWS::S3::Bucket"), "VersioningConfiguration") != nil {
		t.Error("by default the bucket keeps versions")
	}
}
