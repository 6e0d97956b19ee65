package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"cutroom/functions"
)

// TestMain puts the files that CDK's runtime leaves behind into a temporary folder, because the
// runtime's own Close causes a data race.
func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	folder, err := os.MkdirTemp("", "infra-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	// CDK's own template validation takes longer than synthesis and only warns. lint checks the templates instead.
	for name, value := range map[string]string{"TMPDIR": folder, "CDK_VALIDATION": "false"} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// fakeFunctions returns a folder with an empty stand-in for each function, which is enough for a template.
func fakeFunctions(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range functions.Names() {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "bootstrap"), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// features returns the context in cdk.json: CDK's feature flags.
func features(t *testing.T) *map[string]any {
	t.Helper()
	text, err := os.ReadFile("../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Context map[string]any }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return &file.Context
}

func describe(t *testing.T, context map[string]any) *stack {
	t.Helper()
	values := map[string]any{"functions": fakeFunctions(t)}
	for key, value := range context {
		values[key] = value
	}
	o, err := readOptions(values)
	if err != nil {
		t.Fatal(err)
	}
	o.Root = ".."
	app := awscdk.NewApp(
		&awscdk.AppProps{Outdir: jsii.String(t.TempDir()), AnalyticsReporting: jsii.Bool(false), PostCliContext: features(t)})
	s, err := newStack(app, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type resource struct {
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
	UpdatePolicy        any
	DependsOn           any
}

type template struct {
	assertions.Template
	resources map[string]resource
}

// templates caches the synthesized templates by stack and context. Each takes about a second of CPU
// time, and several tests read the same template.
var templates = map[string]template{}

// contextOfPreviews describes a service whose preview workers have an image, because building one takes longer.
var contextOfPreviews = map[string]any{"workerImage": "worker"}

// contextOfChoices has options that do not affect each other, so that their tests share a template.
var contextOfChoices = map[string]any{
	"workerImage": "worker", "workerSpot": "true", "workerMax": "7", "networkCidr": "10.20.0.0/16",
	"networkZones": "eu-west-1c, eu-west-1a", "tags": "team=media,cost-center=4=2", "alarmEmail": "ops@example.com",
	"origins": "https://app.example.com", "contentRedirect": "true", "keepVersions": "7", "requestsPerSecond": "20",
	"burst": "30", "secretName": "secret",
}

// synthesize returns the stack's template for a context. Tests share the template, so they must not change it or run
// in parallel.
func synthesize(t *testing.T, context map[string]any) template {
	t.Helper()
	o, err := readOptions(context)
	if err != nil {
		t.Fatal(err)
	}
	return once(t, fmt.Sprintf("service %+v", o), func() awscdk.Stack { return describe(t, context).Stack })
}

// once returns the template for a key. The first call synthesizes it.
func once(t *testing.T, key string, describe func() awscdk.Stack) template {
	t.Helper()
	if _, ok := templates[key]; !ok {
		templates[key] = parse(t, describe())
	}
	return templates[key]
}

func parse(t *testing.T, stack awscdk.Stack) template {
	t.Helper()
	made := assertions.Template_FromStack(stack, nil)
	text, err := json.Marshal(made.ToJSON())
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct{ Resources map[string]resource }
	if err := json.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	return template{made, parsed.Resources}
}

// of returns the resources of a type. If it finds none, the test fails.
func (m template) of(t *testing.T, kind string) map[string]resource {
	t.Helper()
	found := map[string]resource{}
	for id, r := range m.resources {
		if r.Type == kind && (kind != "AWS::Lambda::Function" || r.Properties["FunctionName"] != nil) { // CDK's own functions have no name
			found[id] = r
		}
	}
	if len(found) == 0 {
		t.Fatalf("the template has no %s", kind)
	}
	return found
}

// at returns a nested property, or nil.
func at(value any, keys ...string) any {
	for _, key := range keys {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}
