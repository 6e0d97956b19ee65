package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/iamtest"
)

// rights returns the template's permissions in the format that the functions' tests use.
func (m template) rights(t *testing.T) iamtest.Rights {
	t.Helper()
	text, err := json.Marshal(m.ToJSON())
	if err != nil {
		t.Fatal(err)
	}
	rights, err := iamtest.ReadTemplate(text, awstest.Here)
	if err != nil {
		t.Fatal(err)
	}
	return rights
}

// holdPolicies compares the templates' policies with testdata/policies.json, against which the
// functions' tests check their calls. Roles of the GPU stack have the prefix "gpu/".
func holdPolicies(t *testing.T, service, gpu template) {
	t.Helper()
	rights := service.rights(t)
	for role, policies := range gpu.rights(t).Roles {
		rights.Roles["gpu/"+role] = policies
	}
	got, err := json.MarshalIndent(rights, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "policies.json")
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(got), bytes.TrimSpace(want)) {
		t.Errorf("%s differs from the templates: run this test with -update and check the difference", golden)
	}
}

var tracedContext = map[string]any{
	"watch": "off", "workerImage": "worker", "ingest": "fargate", "ingestImage": "media",
	"mediaDomain": "media.example.com", "mediaCertificate": "arn:aws:acm:eu-central-1:123456789012:certificate/b",
	"tracing": "on",
}

// In every variant of the stack, the roles have the permissions in testdata/policies.json, except for permissions
// that depend on the variant. So the results of the functions' tests apply to every variant.
func TestPoliciesMatchInEveryStackVariant(t *testing.T) {
	golden := awstest.DeployedRights(t)
	for _, c := range []struct {
		context map[string]any
		// ignored lists substrings of permissions that may differ.
		ignored []string
	}{
		{map[string]any{"workerImage": "worker"}, nil},
		{map[string]any{"console": "true"}, []string{" ecr:"}}, // the worker's image is built
		{map[string]any{"worker": "none", "watch": "off"}, []string{"function:cutroom-dev-wake"}},
		{map[string]any{"stage": "prod", "worker": "none", "watch": "off"}, []string{"function:cutroom-dev-wake"}},
		{map[string]any{"gpu": "true", "gpu.max": "3", "watch": "off"}, []string{" ecs:"}},
		{tracedContext, []string{" xray:"}},
	} {
		t.Run(fmt.Sprint(c.context), func(t *testing.T) {
			rights := synthesize(t, c.context).rights(t)
			want, got := grants(t, golden), grants(t, rights)
			for _, line := range slices.Concat(missing(want, got), missing(got, want)) {
				role, _, _ := strings.Cut(line, " ")
				_, here := rights.Roles[role]
				_, there := golden.Roles[role]
				differs := func(part string) bool { return strings.Contains(line, part) }
				if here && there && !slices.ContainsFunc(c.ignored, differs) {
					t.Errorf("only one form has: %s", line)
				}
			}
			for arn, policies := range golden.Resources {
				arn = strings.ReplaceAll(arn, "cutroom-dev", "cutroom-"+stageOf(c.context))
				now := strings.ReplaceAll(fmt.Sprintf("%s", rights.Resources[arn]), "cutroom-"+stageOf(c.context), "cutroom-dev")
				if want := fmt.Sprintf("%s", policies); compact(t, now) != compact(t, want) {
					t.Errorf("the policy of %s is %s, want %s", arn, now, want)
				}
			}
		})
	}
}

func stageOf(context map[string]any) string {
	if stage, ok := context["stage"].(string); ok {
		return stage
	}
	return "dev"
}

func missing(from, other []string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(line string) bool { return slices.Contains(other, line) })
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return ids.ReplaceAllString(b.String(), "")
}

// ids matches the ids of statements, in which CDK puts a digest of the stack's name.
var ids = regexp.MustCompile(`,"Sid":"[^"]*"`)

// grants returns a line for each action that a role of the stage "dev" may perform on a resource.
func grants(t *testing.T, rights iamtest.Rights) []string {
	t.Helper()
	var lines []string
	for role, policies := range rights.Roles {
		for _, text := range policies {
			p, err := iamtest.ParsePolicy(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range p.Statements {
				for _, action := range s.Actions {
					for _, resource := range s.Resources {
						line := strings.Join([]string{role, action, resource}, " ")
						lines = append(lines, strings.ReplaceAll(line, "cutroom-prod", "cutroom-dev"))
					}
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}
