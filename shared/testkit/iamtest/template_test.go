package iamtest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"cutroom/shared/testkit/iamtest"
)

var place = iamtest.Place{Partition: "aws", Region: "eu-central-1", Account: account}

// template has one role with a separate policy, one with an inline policy, and resource policies.
const template = `{"Resources": {
"Blobs1234ABCD": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": {"Fn::Join": ["", ["b-", {"Ref": "AWS::AccountId"}]]}}},
"Own1234ABCD": {"Type": "AWS::S3::Bucket", "Properties": {}},
"Queue1234ABCD": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "q"}},
"Table1234ABCD": {"Type": "AWS::DynamoDB::GlobalTable", "Properties": {"TableName": "t"}},
"Secret1234ABCD": {"Type": "AWS::SecretsManager::Secret", "Properties": {"Name": "s"}},
"FilesRole1234ABCD": {"Type": "AWS::IAM::Role", "Properties": {}},
"Function1234ABCD": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "files",
	"Role": {"Fn::GetAtt": ["FilesRole1234ABCD", "Arn"]}}},
"FilesPolicy": {"Type": "AWS::IAM::Policy", "Properties": {"Roles": [{"Ref": "FilesRole1234ABCD"}],
	"PolicyDocument": {"Version": "2012-10-17", "Statement": [
		{"Effect": "Allow", "Action": "s3:GetObject", "Resource": {"Fn::Join": ["", [{"Fn::GetAtt": ["Blobs1234ABCD", "Arn"]}, "/*"]]}},
		{"Effect": "Allow", "Action": ["dynamodb:GetItem", "dynamodb:PutItem"], "Resource": [{"Fn::GetAtt": ["Table1234ABCD", "Arn"]},
			{"Fn::Sub": "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/other"}]},
		{"Effect": "Allow", "Action": "dynamodb:GetRecords", "Resource": {"Fn::GetAtt": ["Table1234ABCD", "StreamArn"]}},
		{"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": {"Ref": "Secret1234ABCD"}}]}}},
"OtherRole": {"Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyName": "p", "PolicyDocument":
	{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}}}]}},
"ManagedRole": {"Type": "AWS::IAM::Role", "Properties": {"ManagedPolicyArns":
	[{"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":iam::aws:policy/P"]]}]}},
"BlobsPolicy": {"Type": "AWS::S3::BucketPolicy", "Properties": {"Bucket": {"Ref": "Blobs1234ABCD"},
	"PolicyDocument": {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "s3:*",
		"Resource": [{"Fn::GetAtt": ["Blobs1234ABCD", "Arn"]}, {"Fn::Join": ["", [{"Fn::GetAtt": ["Blobs1234ABCD", "Arn"]}, "/*"]]}],
		"Condition": {"Bool": {"aws:SecureTransport": "false"}}}]}}},
"QueuePolicy": {"Type": "AWS::SQS::QueuePolicy", "Properties": {"Queues": [{"Ref": "Queue1234ABCD"}],
	"PolicyDocument": {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "sqs:*",
		"Resource": {"Fn::GetAtt": ["Queue1234ABCD", "Arn"]}, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}]}}}}}`

func TestTemplateIsReadAsAccount(t *testing.T) {
	a := accountOf(t, template)
	if role := a.RoleOf("files"); role != "FilesRole" {
		t.Errorf("the role of files is %q", role)
	}
	at := "arn:aws:dynamodb:eu-central-1:" + account + ":table/"
	blob, queue := "arn:aws:s3:::b-"+account+"/files/1", "arn:aws:sqs:eu-central-1:"+account+":q"
	secret := "arn:aws:secretsmanager:eu-central-1:" + account + ":secret:s-AbCdEf"
	for _, c := range []struct {
		role, action, resource, secure string
		want                           bool
	}{
		{"FilesRole", "s3:GetObject", blob, "true", true},
		{"FilesRole", "s3:GetObject", blob, "false", false},
		{"FilesRole", "s3:GetObject", "arn:aws:s3:::b-" + account, "true", false},
		{"FilesRole", "s3:PutObject", blob, "true", false},
		{"FilesRole", "dynamodb:GetItem", at + "t", "true", true},
		{"FilesRole", "dynamodb:PutItem", at + "other", "true", true},
		{"FilesRole", "dynamodb:PutItem", at + "another", "true", false},
		{"FilesRole", "dynamodb:Query", at + "t", "true", false},
		{"FilesRole", "dynamodb:GetRecords", at + "t/stream/2026-01-01T00:00:00.000", "true", true},
		{"FilesRole", "secretsmanager:GetSecretValue", secret, "true", true},
		{"OtherRole", "sqs:SendMessage", queue, "true", true},
		{"OtherRole", "sqs:SendMessage", queue, "false", false},
		{"OtherRole", "sqs:SendMessage", queue + "2", "false", true},
		{"", "sqs:SendMessage", queue, "true", false},
	} {
		decided, err := a.Decide(c.role, iamtest.Request{Action: c.action, Resource: c.resource,
			Context: map[string][]string{"aws:SecureTransport": {c.secure}}})
		if err != nil || decided.Allowed != c.want {
			t.Errorf("%+v: %+v %v", c, decided, err)
		}
	}
	for _, role := range []string{"ManagedRole", "NoRole"} {
		if decided, err := a.Decide(role, iamtest.Request{Action: "a:B", Resource: "*"}); err == nil || decided.Allowed {
			t.Errorf("%s: %+v %v", role, decided, err)
		}
	}
}

func accountOf(t *testing.T, template string) *iamtest.Account {
	t.Helper()
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(template), "", " "); err != nil {
		t.Fatal(err)
	}
	rights, err := iamtest.ReadTemplate(text.Bytes(), place)
	if err != nil {
		t.Fatal(err)
	}
	a, err := iamtest.NewAccount(place, rights)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// If a template has unsupported content, the error names it.
func TestUnsupportedTemplatesAreRejected(t *testing.T) {
	for from, to := range map[string]string{
		`{"Ref": "Secret1234ABCD"}`:                       `{"Fn::ImportValue": "x"}`,
		`{"Fn::GetAtt": ["Table1234ABCD", "StreamArn"]}`:  `{"Fn::GetAtt": ["Table1234ABCD", "Other"]}`,
		`"Bool": {"aws:SecureTransport": "false"}}}]}}},`: `"Boolean": {"aws:SecureTransport": "false"}}}]}}},`,
		`"Bucket": {"Ref": "Blobs1234ABCD"}`:              `"Bucket": "elsewhere"`,
		`"Queues": [{"Ref": "Queue1234ABCD"}]`:            `"Queues": [{"Ref": "BlobsPolicy"}]`,
		`"OtherRole": {"Type": "AWS::IAM::Role"`:          `"OtherRole": {"Type": "AWS::IAM::ManagedPolicy"`,
		`${AWS::Partition}`:                               `${Unknown}`,
	} {
		changed := strings.Replace(template, from, to, 1)
		if _, err := iamtest.ReadTemplate([]byte(changed), place); changed == template || err == nil {
			t.Errorf("a template with %s instead of %s was accepted", to, from)
		}
	}
}

// A permission is needed if no other permission allows the request.
func TestUnneededPermissionsAreFound(t *testing.T) {
	a := accountOf(t, template)
	at := "arn:aws:dynamodb:eu-central-1:" + account + ":table/"
	asked := []iamtest.Request{
		{Action: "dynamodb:GetItem", Resource: at + "t"}, {Action: "dynamodb:PutItem", Resource: at + "other"},
		{Action: "s3:GetObject", Resource: "arn:aws:s3:::b-" + account + "/files/1"},
	}
	unneeded, err := a.Unneeded("FilesRole", asked)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range unneeded {
		got = append(got, p.Action+" "+p.Resource[strings.LastIndex(p.Resource, ":")+1:])
	}
	want := "dynamodb:GetItem table/other, dynamodb:PutItem table/t, dynamodb:GetRecords 00.000, " +
		"secretsmanager:GetSecretValue s-AbCdEf"
	if strings.Join(got, ", ") != want {
		t.Errorf("unneeded permissions: %s", strings.Join(got, ", "))
	}
	less := a.Without("FilesRole", "dynamodb:GetItem")
	for action, want := range map[string]bool{"dynamodb:GetItem": false, "dynamodb:PutItem": true} {
		decided, err := less.Decide("FilesRole", iamtest.Request{Action: action, Resource: at + "t"})
		if err != nil || decided.Allowed != want {
			t.Errorf("without GetItem, %s: %+v %v", action, decided, err)
		}
	}
	if decided, err := a.Decide("FilesRole", asked[0]); err != nil || !decided.Allowed {
		t.Errorf("the account itself has changed: %+v %v", decided, err)
	}
}
