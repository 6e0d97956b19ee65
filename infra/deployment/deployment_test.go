// Package deployment tests the deployment: it deploys the real app to a local AWS with the CDK command line, like
// a deployer, and uses it through its API Gateway. docs/local-aws.md lists the gaps of the local AWS.
package deployment

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/lambdatest"
	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

type deployed struct {
	cloud *awstest.Cloud
	root  string
	// functions is the folder of built functions. worker is the path of the built worker.
	functions, worker string
	program           servertest.Program
	outputs           map[string]string
	template          string
	// front is the URL of a program that serves the APIs instead of the local AWS, or "".
	front string
	// calls proxies the functions' and workers' AWS calls. It is nil if they are not proxied.
	calls *awstest.Proxy
}

const stage = "test"

func TestDeploymentWorks(t *testing.T) {
	d := deploy(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *deployed)
	}{
		{"SAM", testSAM},
		{"Keys", testKeys},
		{"Check", testCheck},
		{"DeployWhileJobsRun", testDeployWhileJobsRun},
		{"Destroy", testDestroy},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, d) })
	}
}

// deploy builds everything, starts the local AWS and deploys into it.
func deploy(t *testing.T) *deployed {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	d := &deployed{root: root}
	// If another test has built the programs, they are reused.
	folder := t.TempDir()
	d.build(t, programtest.Folder(folder))
	if d.worker, err = programtest.Build(t.Context(), folder, "cutroom/cmd/worker"); err == nil {
		d.program, err = servertest.Build(t.Context(), folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.startCloud(t)
	d.redeploy(t)
	return d
}

// build builds the functions into a folder, from the checkout at root.
func (d *deployed) build(t *testing.T, folder string) {
	t.Helper()
	built, err := lambdatest.BuildAll(t.Context(), d.root, folder)
	if err != nil {
		t.Fatal(err)
	}
	d.functions = launched(t, built)
}

func (d *deployed) startCloud(t *testing.T) {
	t.Helper()
	// The local AWS reads the functions' AWS endpoint when it starts.
	d.calls = awstest.NewProxy(t, "", 1, awstest.Faults{})
	d.cloud = awstest.Start(t, "LAMBDA_EXECUTOR=local", "AWS_ENDPOINT_URL="+d.calls.URL)
	d.calls.To(d.cloud.URL)
	cdk := awstest.Tool(t, "cdk/node_modules/.bin/cdk")
	// In the app's folder, CDK would synthesize the app first.
	bootstrap := exec.CommandContext(bounded(t), cdk, "bootstrap", "aws://"+awstest.Account+"/"+awstest.Region)
	bootstrap.Dir, bootstrap.Env = t.TempDir(), d.environment()
	if out, err := bootstrap.CombinedOutput(); err != nil {
		t.Fatalf("cdk bootstrap: %v\n%s", err, out)
	}
}

// launched returns a folder of launchers that run the built functions in place. Packing the functions would take CDK
// three times as long as everything else it does. Only one function is deployed as built.
func launched(t *testing.T, built string) string {
	t.Helper()
	folder := t.TempDir()
	programs, err := filepath.Glob(filepath.Join(built, "*", "bootstrap"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("no functions in %s: %v", built, err)
	}
	for _, program := range programs {
		name := filepath.Base(filepath.Dir(program))
		if name == "files" {
			if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Dir(program))); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		launcher := fmt.Sprintf("#!/bin/sh\nexec '%s'\n", program)
		if err := os.WriteFile(filepath.Join(folder, name, "bootstrap"), []byte(launcher), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func (d *deployed) redeploy(t *testing.T, context ...string) {
	t.Helper()
	folder := t.TempDir()
	outputs := filepath.Join(folder, "outputs.json")
	arguments := []string{
		"deploy", "--require-approval", "never", "--output", filepath.Join(folder, "cdk.out"), "--outputs-file", outputs,
		"-c", "stage=" + stage, "-c", "arch=" + lambdatest.Architecture(), "-c", "functions=" + d.functions,
		// The local AWS buffers responses, runs no containers, and allows one metric per alarm.
		"-c", "streaming=off", "-c", "worker=none", "-c", "watch=off",
		// The tests run webhook receivers on this machine.
		"-c", "webhookAllow=127.0.0.1",
	}
	for _, value := range context {
		arguments = append(arguments, "-c", value)
	}
	d.run(t, d.environment(), awstest.Tool(t, "cdk/node_modules/.bin/cdk"), arguments...)
	text, err := os.ReadFile(outputs)
	if err != nil {
		t.Fatal(err)
	}
	var stacks map[string]map[string]string
	if err := json.Unmarshal(text, &stacks); err != nil {
		t.Fatal(err)
	}
	if d.outputs = stacks["cutroom-"+stage]; d.outputs == nil {
		t.Fatalf("the outputs are %s", text)
	}
	d.template = filepath.Join(folder, "cdk.out", "Cutroom-"+stage+".template.json")
	d.guard(t)
}

// testDestroy deletes the deployment and its data with `make destroy`, and creates it again.
func testDestroy(t *testing.T, d *deployed) {
	old := d.client(t, "destroy")
	uploaded(t, old, short(t))
	d.run(t, append(d.environment(), "CONFIRM="+stage), "make", "destroy", "CONTEXT=-c stage="+stage+" -c worker=none -c watch=off")
	if answer, err := old.Get(bounded(t), "/v1/files"); err == nil && answer.Status == http.StatusOK {
		t.Errorf("the deployment still serves: %s", answer.Body)
	}
	d.redeploy(t)
	old.URL = d.url(t, "MediaUrl")
	if answer, err := old.Get(bounded(t), "/v1/files"); err != nil || answer.Status != http.StatusUnauthorized {
		t.Errorf("a key from before: %v, %d", err, answer.Status)
	}
	uploaded(t, d.client(t, "destroy"), short(t))
}

func (d *deployed) run(t *testing.T, environment []string, name string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(await.TestContext(t), name, arguments...)
	command.Dir, command.Env = d.root, environment
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
	}
}

// environment returns the variables that make programs use the local AWS.
func (d *deployed) environment() []string {
	var environment []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CUTROOM_") && !strings.HasPrefix(variable, "AWS_") {
			environment = append(environment, variable)
		}
	}
	environment = append(environment, d.cloud.Environment()...)
	// Tests in package infra check the templates that CDK would validate here.
	return append(environment, "AWS_ENDPOINT_URL_S3="+d.cloud.URL, "CDK_DISABLE_CLI_TELEMETRY=1", "CDK_VALIDATION=false")
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	return await.Context(t)
}

// url returns an API's URL in the local AWS. The host names in the stack's outputs do not resolve.
func (d *deployed) url(t *testing.T, output string) string {
	t.Helper()
	if d.front != "" {
		return d.front
	}
	host := strings.TrimPrefix(d.outputs[output], "https://")
	id, _, found := strings.Cut(host, ".")
	if !found || !strings.HasSuffix(host, "/live") {
		t.Fatalf("%s is %q", output, d.outputs[output])
	}
	return d.cloud.URL + "/restapis/" + id + "/live/_user_request_"
}

func (d *deployed) key(t *testing.T, account string, flags ...string) string {
	t.Helper()
	command := append(strings.Fields(strings.ReplaceAll(d.outputs["FirstKey"], "ACCOUNT", account)), flags...)
	ended, err := d.program.Run(bounded(t), d.environment(), command[1:]...)
	if err != nil || ended.ExitCode != 0 {
		t.Fatalf("%v: %v %s", command, err, ended.Stderr)
	}
	return strings.TrimSpace(ended.Stdout)
}

func (d *deployed) client(t *testing.T, account string) *servertest.Client {
	t.Helper()
	return &servertest.Client{URL: d.url(t, "MediaUrl"), Key: d.key(t, account)}
}

func until(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	ctx := await.TestContext(t)
	await.Until(t, what, func() bool {
		ok, err := done(ctx)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return ok
	})
}

func ended(t *testing.T, client *servertest.Client, id string) servertest.Job {
	t.Helper()
	job, err := client.Await(bounded(t), id, func(servertest.Job) {})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func submit(t *testing.T, client *servertest.Client, clip []byte) servertest.Job {
	t.Helper()
	job, err := client.Submit(bounded(t), "gen-2.5",
		servertest.Form{servertest.File("data", "clip.mp4", clip), servertest.Text("prompt", "a watercolor painting")})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// testSAM checks that SAM, which runs functions locally, accepts the template.
func testSAM(t *testing.T, d *deployed) {
	d.run(t, append(d.environment(), "SAM_CLI_TELEMETRY=0"), awstest.Tool(t, "template/bin/sam"), "validate",
		"--template", d.template)
}

func testKeys(t *testing.T, d *deployed) {
	client := d.client(t, "keys")
	if answer, err := client.Get(bounded(t), "/v1/files"); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("a new key: %v %d", err, answer.Status)
	}
	list, err := d.program.Run(bounded(t), d.environment(), "keys", "list", "--stage", stage, "--account", "keys",
		"--json")
	if err != nil {
		t.Fatal(err)
	}
	var key struct{ ID, Account, State string }
	if err := json.Unmarshal([]byte(list.Stdout), &key); err != nil || key.Account != "keys" || key.State != "active" {
		t.Fatalf("the list is %s (%v)", list.Stdout, err)
	}
	if revoked, err := d.program.Run(bounded(t), d.environment(), "keys", "revoke", "--stage", stage,
		key.ID); err != nil || revoked.ExitCode != 0 {
		t.Fatalf("revoke: %v %s", err, revoked.Stderr)
	}
	// A warm function sees a revocation within credential.CacheAge.
	until(t, "the revoked key is rejected", func(ctx context.Context) (bool, error) {
		answer, err := client.Get(ctx, "/v1/files")
		return answer.Status == http.StatusUnauthorized, err
	})
	missing, err := d.program.Run(bounded(t), d.environment(), "keys", "list", "--stage", "missing")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("no deployment of the stage %q exists", "missing"); missing.ExitCode == 0 ||
		!strings.Contains(missing.Stderr, want) {
		t.Errorf("keys of a missing deployment: exit code %d, %q", missing.ExitCode, missing.Stderr)
	}
}
