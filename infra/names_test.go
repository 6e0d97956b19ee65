package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Names stay within their maximum length for the longest stage, and remain distinct.
func TestNamesStayWithinMaximumLength(t *testing.T) {
	const stage = "a234567890123456"
	made := synthesize(t, map[string]any{
		"stage": stage, "protect": "false", "tracing": "on", "realtime": "true", "ingest": "fargate",
		"realtimeDomain": "live.example.com", "realtimeCertificate": "arn:aws:acm:eu-central-1:111122223333:certificate/1",
		"mediaDomain": "media.example.com", "mediaCertificate": "arn:aws:acm:eu-central-1:111122223333:certificate/2",
		"workerImage": "worker", "ingestImage": "media", "realtimeImage": "realtime",
	})
	seen := map[string]bool{}
	for kind, path := range map[string][]string{
		"AWS::XRay::SamplingRule":                   {"SamplingRule", "RuleName"},
		"AWS::ElasticLoadBalancingV2::LoadBalancer": {"Name"},
	} {
		for id, resource := range made.of(t, kind) {
			name := fmt.Sprint(at(resource.Properties, path...))
			if len(name) > 32 || seen[name] || strings.HasSuffix(name, "-") || !strings.HasPrefix(name, "cutroom-") {
				t.Errorf("%s has the name %q", id, name)
			}
			seen[name] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("the names are %v", seen)
	}
	if name := (options{Stage: "dev"}).boundedName("realtime", 32); name != "cutroom-dev-realtime" {
		t.Errorf("a short name became %s", name)
	}
}

// Names that must be unique across an account's regions contain the region.
func TestGlobalNamesContainTheRegion(t *testing.T) {
	made := synthesize(t, map[string]any{"console": "true"})
	for kind, path := range map[string][]string{
		"AWS::CloudFront::OriginAccessControl":   {"OriginAccessControlConfig", "Name"},
		"AWS::CloudFront::ResponseHeadersPolicy": {"ResponseHeadersPolicyConfig", "Name"},
	} {
		for id, resource := range made.of(t, kind) {
			if name := fmt.Sprint(at(resource.Properties, path...)); !strings.Contains(name, "AWS::Region") {
				t.Errorf("%s has the name %s", id, name)
			}
		}
	}
}

// Lambda stops a function that has invoked itself sixteen times in a row. A webhook's later
// attempts take 24 or more invocations, and a long batch takes any number.
func TestLoopingFunctionsMayInvokeThemselves(t *testing.T) {
	made := synthesize(t, contextOfPreviews)
	for _, f := range made.of(t, "AWS::Lambda::Function") {
		want := "Terminate"
		switch f.Properties["FunctionName"] {
		case "cutroom-dev-webhooks", "cutroom-dev-steps":
			want = "Allow"
		}
		if f.Properties["RecursiveLoop"] != want {
			t.Errorf("%v: %v", f.Properties["FunctionName"], f.Properties["RecursiveLoop"])
		}
	}
}

// Secrets Manager takes a name that ends with a hyphen and six characters for part of an ARN.
func TestNamesOfSecretsAreNotPartialARNs(t *testing.T) {
	for id, secret := range synthesize(t, map[string]any{"c2pa": "on", "workerImage": "worker"}).of(t, "AWS::SecretsManager::Secret") {
		if name, named := secret.Properties["Name"].(string); named && regexp.MustCompile(`-\w{6}$`).MatchString(name) {
			t.Errorf("%s has the name %s", id, name)
		}
	}
}

// An update of 0.1.0 with secretName=secret changes nothing about its secret, so CloudFormation does not replace it.
func TestSecretOfEarlierVersionIsKept(t *testing.T) {
	made := synthesize(t, contextOfChoices).of(t, "AWS::SecretsManager::Secret")
	secret := maps.Clone(made["SecretA720EF05"].Properties)
	delete(secret, "Tags")
	if want := map[string]any{"Name": "cutroom-dev-secret", "Description": "Seals page cursors and signs webhooks",
		"GenerateSecretString": map[string]any{"ExcludePunctuation": true, "PasswordLength": 64.0}}; !reflect.DeepEqual(secret, want) {
		t.Errorf("the secret is %v", secret)
	}
}
