package main

import (
	"cmp"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type workflow struct {
	On struct {
		PullRequest struct{ Types []string } `yaml:"pull_request"`
	}
	Concurrency string
	Env         map[string]string
	Jobs        map[string]struct {
		If, Concurrency string
		Steps           []struct{ If, Run string }
	}
}

func deployWorkflow(t *testing.T) workflow {
	t.Helper()
	text, err := os.ReadFile("../.github/workflows/deploy.yml")
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// GitHub compares the quotas before each deployment of the assembly, and calls the deployment afterwards.
func TestWorkflowChecksEveryDeployment(t *testing.T) {
	w := deployWorkflow(t)
	for _, name := range []string{"dev", "prod"} {
		var order []string
		for _, step := range w.Jobs[name].Steps {
			if found := regexp.MustCompile(`CHECK=-before|cdk deploy|check-deploy CONTEXT`).FindString(step.Run); found != "" {
				order = append(order, found)
			}
		}
		if got := strings.Join(order, ", "); got != "CHECK=-before, cdk deploy, check-deploy CONTEXT" {
			t.Errorf("%s runs %s", name, got)
		}
		// A deployment to prod that waits for its review must not hold dev.
		if group := w.Concurrency + w.Jobs[name].Concurrency; group != "deploy-"+name {
			t.Errorf("%s is in the group %s", name, group)
		}
	}
	// Without credentials, the number of zones for GPUs depends on this variable.
	if w.Env["AWS_REGION"] != "${{ vars.AWS_REGION }}" {
		t.Errorf("the assembly gets the region %q", w.Env["AWS_REGION"])
	}
}

// make bootstrap creates the role of ECS and shows low quotas, which do not make it fail.
func TestBootstrapCreatesTheRoleOfECS(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "make", "-n", "-C", "..", "bootstrap", "CONTEXT=-c gpu=true").CombinedOutput()
	if err != nil || !regexp.MustCompile(`cdk bootstrap .*\n.* run ./infra/check -before -- -c gpu=true \|\| true\b`).Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}

// pullRequest is an event of GitHub.
type pullRequest struct {
	action, label   string
	labeled, closed bool // whether it has the label "preview", and its state
}

// meets evaluates an expression of the workflow. GitHub's operators are Go's.
func (p pullRequest) meets(t *testing.T, expression string) bool {
	t.Helper()
	inGo := strings.NewReplacer("contains(github.event.pull_request.labels.*.name, 'preview')", strconv.FormatBool(p.labeled),
		"github.event.pull_request.head.repo.full_name", "`o/r`", "github.repository", "`o/r`", "vars.DEV_ROLE", "true",
		"github.event_name", "`pull_request`", "!github.event.label.name", strconv.FormatBool(p.label == ""),
		"github.event.label.name", "`"+p.label+"`", "github.event.pull_request.state", map[bool]string{false: "`open`", true: "`closed`"}[p.closed],
		"'", "`").Replace(cmp.Or(expression, "true"))
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, inGo)
	if err != nil {
		t.Fatalf("%s: %v", inGo, err)
	}
	return value.Value.String() == "true"
}

// A preview is deployed while a pull request has the label, and destroyed when the label or the request is gone.
func TestPreviewsEndWithTheirLabel(t *testing.T) {
	w := deployWorkflow(t)
	for event, want := range map[pullRequest]string{
		{"opened", "", false, false}: "", {"synchronize", "", true, false}: "deploy", {"labeled", "preview", true, false}: "deploy",
		{"labeled", "bug", true, false}: "", {"unlabeled", "bug", true, false}: "", {"unlabeled", "preview", false, false}: "destroy",
		{"closed", "", true, true}: "destroy", {"closed", "", false, true}: "destroy", {"reopened", "", true, false}: "deploy",
		{"labeled", "released", true, true}: "", {"unlabeled", "bug", true, true}: "", {"unlabeled", "preview", false, true}: "destroy",
		{"labeled", "preview", true, true}: "destroy",
	} {
		var done []string
		preview := w.Jobs["preview"]
		for _, step := range preview.Steps {
			if verb := regexp.MustCompile(`make (deploy|destroy)`).FindStringSubmatch(step.Run); verb != nil &&
				event.meets(t, preview.If) && event.meets(t, step.If) {
				done = append(done, verb[1])
			}
		}
		if got := strings.Join(done, ", "); got != want || !slices.Contains(w.On.PullRequest.Types, event.action) {
			t.Errorf("%+v: %q, want %q, on %v", event, got, want, w.On.PullRequest.Types)
		}
		if want := !event.closed && event.label == ""; event.meets(t, w.Jobs["assembly"].If) != want {
			t.Errorf("%+v: an assembly is written: %t", event, !want)
		}
	}
}
