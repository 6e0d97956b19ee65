package deployment

import (
	"encoding/json"
	"strings"
	"testing"

	"cutroom/cmd/cutroom/deploycheck"
	"cutroom/shared/testkit/patience"
)

// testCheck runs the deployer's own check of a deploy, as far as a local AWS goes, and
// then once with a worker that cannot edit.
func testCheck(t *testing.T, d *deployed) {
	secondRun := d.loseWorker(t)
	worker := d.startWorker(t)
	states := d.check(t, 0)
	secondRun()
	for name, state := range states {
		if state != "held" && state != "skipped" {
			t.Errorf("%s has %s", name, state)
		}
	}
	// What the local AWS cannot do, a receiver and sessions are left out, and nothing
	// else.
	for _, name := range []string{"job", "image", "routes", "preflight", "failure", "cancel", "content", "upload",
		"form-upload", "chat", "usage", "webhook-retry", "lifetimes", "dead-letters"} {
		if states[name] != "held" {
			t.Errorf("%s is %q, want held", name, states[name])
		}
	}
	worker.stop(t)
	d.startWorker(t, brokenEngine(t))
	if states := d.check(t, 1, "--only=job,dead-letters"); states["job"] != "failed" || states["dead-letters"] != "held" {
		t.Errorf("with an engine that fails: %v", states)
	}
}

// loseWorker submits a job and takes it as the check does in an account, where no worker
// runs: it begins a run and is gone. The function that it returns waits until another worker
// has done it.
func (d *deployed) loseWorker(t *testing.T) (secondRun func()) {
	t.Helper()
	d.drain(t)
	deploy, err := deploycheck.Find(t.Context(), d.cloud.Config(), stage)
	if err != nil {
		t.Fatal(err)
	}
	cloud := deploycheck.NewCloud(d.cloud.Config(), deploy)
	client := d.client(t, "lost-by-check")
	job := submit(t, client, short(t))
	if taken, err := cloud.Lose(bounded(t), job.ID); err != nil || !taken {
		t.Fatalf("the job was taken: %t, %v", taken, err)
	}
	return func() {
		t.Helper()
		if j := ended(t, client, job.ID); j.Status != "completed" {
			t.Errorf("the job of the worker that was lost is %+v", j)
		}
		if runs, err := cloud.Runs(t.Context(), job.ID); err != nil || runs != 2 {
			t.Errorf("it took %d runs, %v, want 2", runs, err)
		}
	}
}

// check runs the check, which has to end with the exit code, and returns the states of its
// checks.
func (d *deployed) check(t *testing.T, exitCode int, flags ...string) map[string]string {
	t.Helper()
	arguments := append([]string{
		"check", "--stage", stage, "--local", "--json", "--upload-size=6000000",
		"--media-url", d.url(t, "MediaUrl"), "--inference-url", d.url(t, "InferenceUrl"),
	}, flags...)
	ended, err := d.program.Run(patience.TestContext(t), d.environment(), arguments...)
	if err != nil || ended.ExitCode != exitCode {
		t.Fatalf("the check: %v, exit code %d, want %d\n%s%s", err, ended.ExitCode, exitCode, ended.Stdout, ended.Stderr)
	}
	states := map[string]string{}
	for line := range strings.Lines(ended.Stdout) {
		var result struct{ Check, State, Detail string }
		if err := json.Unmarshal([]byte(line), &result); err != nil {
			t.Fatalf("the check prints %q", line)
		}
		if result.Check != "" {
			states[result.Check] = result.State
			t.Logf("%s %s: %s", result.State, result.Check, result.Detail)
		}
	}
	return states
}
