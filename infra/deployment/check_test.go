package deployment

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cutroom/shared/testkit/await"
)

// testCheck runs the deployment check as far as the local AWS supports it, and then again with a
// worker that cannot edit.
func testCheck(t *testing.T, d *deployed) {
	program := filepath.Join(t.TempDir(), "check")
	d.run(t, nil, "go", "build", "-o", program, "./infra/check")
	worker := d.startWorker(t)
	states := d.check(t, program, true)
	for name, state := range states {
		if state != "held" && state != "skipped" {
			t.Errorf("%s has %s", name, state)
		}
	}
	// The check skips only features that the local AWS lacks, and realtime, which is not deployed.
	for _, name := range []string{"keys", "job", "image", "upload", "stream", "webhook", "state"} {
		if states[name] != "held" {
			t.Errorf("%s is %q, want held", name, states[name])
		}
	}
	worker.stop(t)
	d.startWorker(t, brokenEngine(t))
	if states := d.check(t, program, false, "-only=job,state"); states["job"] != "failed" || states["state"] != "held" {
		t.Errorf("with an engine that fails: %v", states)
	}
}

// check runs the deployment check and returns the state of each of its checks. The run must succeed if succeeds is
// set, and fail otherwise.
func (d *deployed) check(t *testing.T, program string, succeeds bool, flags ...string) map[string]string {
	t.Helper()
	command := exec.CommandContext(await.TestContext(t), program, append(flags, "-local", "-upload-size=6000000", "-stream=0",
		"--", "-c", "stage="+stage)...)
	command.Env = d.environment()
	printed, err := command.CombinedOutput()
	if (err == nil) != succeeds {
		t.Fatalf("the check: %v, want success: %t\n%s", err, succeeds, printed)
	}
	t.Logf("%s", printed)
	states := map[string]string{}
	for line := range strings.Lines(string(printed)) {
		words := strings.Fields(line)
		if len(words) > 2 && slices.Contains([]string{"held", "failed", "skipped"}, words[0]) {
			states[words[1]] = words[0]
		}
	}
	return states
}
