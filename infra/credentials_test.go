package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// With the policy for `cdk bootstrap --cloudformation-execution-policies`, CloudFormation can create every resource.
// It names roles after their stack, and the policy allows only these.
func TestExecutionPolicyCoversEveryResource(t *testing.T) {
	text, err := os.ReadFile("execution-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	var policy struct{ Statement []struct{ Action any } }
	if err := json.Unmarshal(text, &policy); err != nil {
		t.Fatal(err)
	}
	allowed := list(policy.Statement[0].Action)
	services := map[string]string{"elasticloadbalancingv2": "elasticloadbalancing", "stepfunctions": "states"}
	for _, made := range []template{
		synthesize(t, map[string]any{"workerImage": "worker", "console": "true", "tracing": "on",
			"rollout": "canary", "alarmEmail": "ops@example.com", "budget": "100", "webAcl": "arn:aws:wafv2:a:1:regional/webacl/a/1",
			"realtime": "true", "realtimeImage": "realtime", "realtimeDomain": "live.example.com",
			"realtimeCertificate": "arn:aws:acm:eu-central-1:1:certificate/a"}),
		synthesizeGPU(t, nil),
	} {
		for id, r := range made.resources {
			kind, aws := strings.CutPrefix(r.Type, "AWS::")
			service, _, _ := strings.Cut(strings.ToLower(kind), "::")
			if other, ok := services[service]; ok {
				service = other
			}
			if aws && service != "iam" && service != "cloudformation" && !slices.Contains(allowed, any(service+":*")) {
				t.Errorf("the policy lacks %s:* for %s, a %s", service, id, r.Type)
			}
			if name, set := r.Properties["RoleName"].(string); set && !strings.HasPrefix(name, "cutroom-") {
				t.Errorf("%s is called %s", id, name)
			}
		}
	}
}
