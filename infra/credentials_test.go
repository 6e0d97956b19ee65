package main

import (
	"fmt"
	"os"
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
					if !allows(t, limit, strings.ReplaceAll(action.(string), "*", "x"), "*", nil) {
						t.Errorf("boundary.json lacks %s for %s", action, id)
					}
				}
			}
		}
	}
}

// With the policy for `cdk bootstrap --cloudformation-execution-policies`, CloudFormation can create every resource.
// It names roles after their stack, and the policy allows only these.
func TestExecutionPolicyCoversEveryResource(t *testing.T) {
	execution := readPolicy(t, "execution-policy.json")
	services := map[string]string{"elasticloadbalancingv2": "elasticloadbalancing", "stepfunctions": "states"}
	for _, made := range withEverything(t) {
		for id, r := range made.resources {
			kind, aws := strings.CutPrefix(r.Type, "AWS::")
			service, _, _ := strings.Cut(strings.ToLower(kind), "::")
			if other, ok := services[service]; ok {
				service = other
			}
			if aws && service != "iam" && service != "cloudformation" && !allows(t, execution, service+":CreateAny", "*", nil) {
				t.Errorf("the policy lacks %s:* for %s, a %s", service, id, r.Type)
			}
			if name, set := r.Properties["RoleName"].(string); set && !strings.HasPrefix(name, "cutroom-") {
				t.Errorf("%s is called %s", id, name)
			}
		}
	}
}
