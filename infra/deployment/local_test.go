//go:build docker

package deployment

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/testkit/awstest"
	"cutroom/shared/testkit/servertest"
)

// TestLocalAWSWorks uses the deployment on this machine as a user would: it runs `make local-aws` and serves the APIs
// from functions in Docker (`make sam-api`).
func TestLocalAWSWorks(t *testing.T) {
	local := awstest.StartLocal(t, "api")
	t.Run("Job", func(t *testing.T) { testLocalJob(t, &servertest.Client{URL: local.Media, Key: local.Key}) })
	t.Run("Again", func(t *testing.T) { testLocalAgain(t, local) })
	t.Run("TakenPort", func(t *testing.T) { testTakenPort(t, local) })
	t.Run("SAMWithoutLocalAWS", func(t *testing.T) { testSAMWithoutLocalAWS(t, local) })
	d := deployedOf(t, local)
	d.front = local.ServeBySAM(t, "sam-api")
	t.Run("JobBySAM", func(t *testing.T) { testLocalJob(t, d.client(t, "job")) })
	t.Run("Changed", func(t *testing.T) { testLocalChanged(t, local) })
}

// testLocalJob checks that the running worker edits a job, and that a failed job has no content.
func testLocalJob(t *testing.T, client *servertest.Client) {
	job := ended(t, client, submit(t, client, short(t)).ID)
	if job.Status != "completed" {
		t.Errorf("the job ended as %+v %+v", job, job.Error)
	}
	job = ended(t, client, submit(t, client, truncated(t)).ID)
	if job.Status != "failed" || job.Error == nil || job.Error.Code != "invalid_input" {
		t.Errorf("the job of a broken clip ended as %+v %+v", job, job.Error)
	}
	rejected, err := client.Get(bounded(t), "/v1/jobs/"+job.ID+"/content")
	if err != nil || rejected.Status != http.StatusConflict {
		t.Errorf("content of a failed job: %v %d", err, rejected.Status)
	}
}

// testLocalAgain checks that a second start keeps all data, and that nothing is built or deployed.
func testLocalAgain(t *testing.T, local *awstest.Local) {
	said, key := local.Said, local.Key
	if err := local.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if local.Said != said || local.Key != key {
		t.Errorf("the output is %s\nand was %s", local.Said, said)
	}
	if local.Did != "" {
		t.Errorf("it repeated some work: %s", local.Did)
	}
}

// testLocalChanged checks that changes are deployed, that changed models reach the worker too, and
// that the data in the local AWS is kept.
func testLocalChanged(t *testing.T, local *awstest.Local) {
	context := "CONTEXT=-c origins=https://app.example.com -c " + strings.Join(ownFiles, " -c ")
	if _, err := local.Make(t.Context(), "local-aws", context); err != nil {
		t.Fatal(err)
	}
	client := &servertest.Client{URL: local.Media, Key: local.Key}
	answer, err := client.Get(bounded(t), "/v1/files", "Origin", "https://app.example.com")
	if err != nil || answer.Status != http.StatusOK || answer.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("after the deployment: %v %d %v", err, answer.Status, answer.Header)
	}
	testOwnFiles(t, deployedOf(t, local))
}

// testTakenPort checks that the error for a port in use names the port and a solution.
func testTakenPort(t *testing.T, local *awstest.Local) {
	_, err := local.Make(t.Context(), "local-aws", "LOCAL_AWS="+filepath.Join(t.TempDir(), "other"))
	if err == nil || !strings.Contains(err.Error(), "is in use by another program") || !strings.Contains(err.Error(), "LOCAL_AWS_PORT=") {
		t.Errorf("the error is %v", err)
	}
}

// testSAMWithoutLocalAWS checks that the SAM targets explain how to start a local AWS.
func testSAMWithoutLocalAWS(t *testing.T, local *awstest.Local) {
	for _, c := range []struct {
		variables []string
		want      string
	}{
		{[]string{"FUNCTION=files", "EVENT=events/files/list.json", "LOCAL_AWS=" + filepath.Join(t.TempDir(), "none")}, "make local-aws"},
		{[]string{"FUNCTION=none", "EVENT=events/files/list.json"}, "FUNCTION must be one of arrived batches c2pa content"},
		{[]string{"FUNCTION=files", "EVENT=none.json"}, "EVENT must be a file, such as events/files/announce.json"},
		{[]string{"FUNCTION=files", "EVENT=events/files/list.json", "STAGE=A"}, "STAGE: A must be the name of a stage"},
	} {
		_, err := local.Make(t.Context(), "sam-invoke", c.variables...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: the error is %v, want one with %q", c.variables, err, c.want)
		}
	}
}

func deployedOf(t *testing.T, local *awstest.Local) *deployed {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(local.Folder, local.Stage, "outputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var stacks map[string]map[string]string
	if err := json.Unmarshal(text, &stacks); err != nil {
		t.Fatal(err)
	}
	return &deployed{
		cloud: local.Cloud, root: root, worker: filepath.Join(root, "bin", "worker"),
		program: servertest.Program(filepath.Join(root, "bin", "cutroom")), outputs: stacks["cutroom-"+local.Stage],
	}
}

// truncated returns a clip with a complete header but no frames.
func truncated(t *testing.T) []byte {
	t.Helper()
	header, _, found := bytes.Cut(short(t), []byte("mdat"))
	if !found {
		t.Fatal("the clip has no mdat box")
	}
	return append(bytes.Clone(header), "mdat"...)
}
