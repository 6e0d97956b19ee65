package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/thorough"
)

// The stack with all options follows the AwsSolutions rules of cdk-nag, both in the deployer's
// network and in its own, unless a suppression in the code gives a reason.
func TestStackFollowsAwsSolutions(t *testing.T) {
	thorough.Only(t)
	folder := t.TempDir()
	const certificate = "arn:aws:acm:eu-central-1:123456789012:certificate/1"
	for name, context := range map[string]map[string]any{
		"everything": {
			"stage": "prod", "workerImage": "worker", "realtime": "true", "realtimeImage": "realtime", "ingest": "fargate",
			"webrtc": "true", "turn": "turns:turn.example.com:443", "turnSecret": turnSecretOfTests,
			"ingestImage": "media", "c2pa": "on",
			"realtimeDomain": "realtime.example.com", "realtimeCertificate": certificate, "mediaDomain": "media.example.com",
			"mediaCertificate": certificate,
			"inferenceDomain":  "inference.example.com", "inferenceCertificate": certificate,
			"console": "true", "alarmEmail": "ops@example.com", "tracing": "on",
			"upstreamSecrets": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:a",
			"vpc":             "vpc-0a1b2c3d", "subnets": "subnet-0a1b2c3d,subnet-1a1b2c3d",
			"zones": "eu-central-1a,eu-central-1b", "securityGroups": "sg-0a1b2c3d",
			"rollout": "canary", "budget": "100", "keepVersions": "7", "workerSpot": "true", "tags": "team=media",
			"webAcl": "arn:aws:wafv2:eu-central-1:123456789012:regional/webacl/calls/1",
		},
		"private": {
			"workerImage": "worker", "streaming": "off", "watch": "off", "apiLogRole": "keep", "private": "true",
			"apiEndpoints": "vpce-0a1b2c3d", "networkVpc": "vpc-0a1b2c3d", "networkSubnets": "subnet-0a1b2c3d,subnet-1a1b2c3d",
			"networkZones": "eu-central-1a,eu-central-1b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			followsRules(t, describe(t, context).Stack, filepath.Join(folder, name+".json"))
		})
	}
	lint(t, folder)
}

// followsRules checks a stack with cdk-nag and writes its template to a file.
func followsRules(t *testing.T, described awscdk.Stack, path string) {
	t.Helper()
	awscdk.Aspects_Of(described).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: jsii.Bool(true)}), nil)
	text, err := json.Marshal(assertions.Template_FromStack(described, nil).ToJSON())
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := assertions.Annotations_FromStack(described)
	rule := assertions.Match_StringLikeRegexp(jsii.String("AwsSolutions-.*"))
	for _, message := range append(*found.FindError(jsii.String("*"), rule),
		*found.FindWarning(jsii.String("*"), rule)...) {
		t.Errorf("%s: %v", *message.Id, message.Entry.Data) //nolint:staticcheck // it has no other name in Go yet
	}
}

// lint checks the templates in a folder with cfn-lint, which knows CloudFormation's syntax. It
// checks all templates in one run, because starting cfn-lint takes as long as checking one.
func lint(t *testing.T, folder string) {
	t.Helper()
	// W3005 flags the redundant DependsOn that CDK adds from a function to its role.
	command := exec.CommandContext(t.Context(), awstest.Tool(t, "template/bin/cfn-lint"), "--ignore-checks", "W3005",
		"--regions", awstest.Region, "--template", filepath.Join(folder, "*.json"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("cfn-lint: %v\n%s", err, out)
	}
}
