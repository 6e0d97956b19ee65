package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"cutroom/shared/testkit/iamtest"
)

func readPolicy(t *testing.T, name string) []iamtest.Policy {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := iamtest.ParsePolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	return []iamtest.Policy{policy}
}

func allows(t *testing.T, policies []iamtest.Policy, action, resource string, context map[string][]string) bool {
	t.Helper()
	decision, err := iamtest.Decide(iamtest.Request{Action: action, Resource: resource, Context: context}, policies, nil)
	if err != nil {
		t.Fatal(err)
	}
	return decision.Allowed
}

// own returns an ARN of the stage for services whose permissions are limited to the deployment's resources, and "*" for others.
func own(service string) string {
	return cmp.Or(map[string]string{
		"lambda": "arn:aws:lambda:a:1:function:cutroom-dev-x", "s3": "arn:aws:s3:::cutroom-dev-x",
		"secretsmanager": "arn:aws:secretsmanager:a:1:secret:cutroom-dev-x", "states": "arn:aws:states:a:1:stateMachine:cutroom-dev-x",
	}[service], "*")
}

// withEverything returns the templates of both stacks, with all kinds of resources and a permissions boundary.
func withEverything(t *testing.T) []template {
	t.Helper()
	return []template{
		synthesize(t, map[string]any{"workerImage": "worker", "console": "true", "tracing": "on", "boundary": "cutroom-boundary",
			"rollout": "canary", "alarmEmail": "ops@example.com", "budget": "100", "webAcl": "arn:aws:wafv2:a:1:regional/webacl/a/1",
			"realtime": "true", "realtimeImage": "realtime", "realtimeDomain": "live.example.com",
			"realtimeCertificate": "arn:aws:acm:eu-central-1:1:certificate/a"}),
		synthesizeGPU(t, map[string]any{"boundary": "cutroom-boundary", "gpu.spot": "true"}),
	}
}

// A deployer cannot get more permissions than boundary.json has: roles need it as their boundary, and it cannot be changed.
func TestDeployersCannotEscalate(t *testing.T) {
	execution := readPolicy(t, "execution-policy.json")
	const role, boundary = "arn:aws:iam::1:role/cutroom-dev-Role", "arn:aws:iam::1:policy/cutroom-boundary"
	for _, action := range []string{"CreateRole", "PutRolePolicy", "AttachRolePolicy", "PutRolePermissionsBoundary"} {
		for limit, want := range map[string]bool{"": false, "arn:aws:iam::aws:policy/AdministratorAccess": false, boundary: true} {
			context := map[string][]string{}
			if limit != "" {
				context["iam:PermissionsBoundary"] = []string{limit}
			}
			if got := allows(t, execution, "iam:"+action, role, context); got != want {
				t.Errorf("%s with the boundary %q is allowed: %t", action, limit, got)
			}
		}
	}
	for action, resource := range map[string]string{"DeleteRolePermissionsBoundary": role, "CreatePolicyVersion": boundary,
		"SetDefaultPolicyVersion": boundary, "DeletePolicy": boundary, "CreateUser": "arn:aws:iam::1:user/cutroom-a"} {
		if allows(t, execution, "iam:"+action, resource, map[string][]string{"iam:PermissionsBoundary": {boundary}}) {
			t.Errorf("%s is allowed", action)
		}
	}
	limit := readPolicy(t, "boundary.json")
	for _, action := range []string{"lambda:UpdateFunctionCode", "lambda:InvokeFunction", "states:StartExecution", "secretsmanager:DeleteSecret", "s3:PutBucketPolicy"} {
		service, _, _ := strings.Cut(action, ":")
		resource := strings.ReplaceAll(own(service), "cutroom-dev-x", "other")
		if allows(t, execution, action, resource, nil) || allows(t, limit, action, resource, nil) {
			t.Errorf("%s is allowed outside the deployment", action)
		}
	}
	if allows(t, limit, "iam:PassRole", role, nil) || allows(t, limit, "sts:AssumeRole", role, nil) {
		t.Error("programs get other roles")
	}
	for _, made := range withEverything(t) {
		for id, r := range made.of(t, "AWS::IAM::Role") {
			if !strings.HasSuffix(fmt.Sprint(r.Properties["PermissionsBoundary"]), ":policy/cutroom-boundary]]]") {
				t.Errorf("%s has the boundary %v", id, r.Properties["PermissionsBoundary"])
			}
		}
		for id, r := range made.of(t, "AWS::IAM::Policy") {
			for _, statement := range list(at(r.Properties, "PolicyDocument", "Statement")) {
				actions := at(statement, "Action")
				if _, single := actions.(string); single {
					actions = []any{actions}
				}
				for _, action := range list(actions) {
					service, _, _ := strings.Cut(action.(string), ":")
					if !allows(t, limit, strings.ReplaceAll(action.(string), "*", "x"), own(service), nil) {
						t.Errorf("boundary.json lacks %s for %s", action, id)
					}
				}
			}
		}
	}
}

// With the policy for `cdk bootstrap --cloudformation-execution-policies`, CloudFormation can create every resource.
// The policy allows only roles, functions, buckets, secrets and state machines that are named after the stack.
func TestExecutionPolicyCoversEveryResource(t *testing.T) {
	execution := readPolicy(t, "execution-policy.json")
	named := map[string]string{"AWS::IAM::Role": "RoleName", "AWS::Lambda::Function": "FunctionName", "AWS::S3::Bucket": "BucketName",
		"AWS::SecretsManager::Secret": "Name", "AWS::StepFunctions::StateMachine": "StateMachineName"}
	services := map[string]string{"elasticloadbalancingv2": "elasticloadbalancing", "stepfunctions": "states"}
	for _, made := range withEverything(t) {
		for id, r := range made.resources {
			kind, aws := strings.CutPrefix(r.Type, "AWS::")
			service, _, _ := strings.Cut(strings.ToLower(kind), "::")
			if other, ok := services[service]; ok {
				service = other
			}
			if aws && service != "iam" && service != "cloudformation" && !allows(t, execution, service+":CreateAny", own(service), nil) {
				t.Errorf("the policy lacks %s:* for %s, a %s", service, id, r.Type)
			}
			// A generated name starts with the name of the stack or, for secrets, with the logical id.
			name := r.Properties[named[r.Type]]
			if name == nil && service == "secretsmanager" && !allows(t, execution, "secretsmanager:CreateSecret", "arn:aws:secretsmanager:a:1:secret:"+id, nil) {
				t.Errorf("the policy lacks the secret %s", id)
			}
			if name != nil && !regexp.MustCompile(`^(map\[Fn::Join:\[ \[)?cutroom-`).MatchString(fmt.Sprint(name)) {
				t.Errorf("%s is called %v", id, name)
			}
		}
	}
}
