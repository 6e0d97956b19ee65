package deployment

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"

	"cutroom/shared/domain/media/mediatest"
	"cutroom/shared/testkit/servertest"
)

// short returns a clip that is edited quickly.
func short(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(mediatest.Video{Seconds: 0.4, FastStart: true}.Make(t))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// anything accepts every content type; otherwise the local AWS returns binary data as text.
const anything = "*/*"

func testDeployWhileJobsRun(t *testing.T, d *deployed) {
	client := d.client(t, "deploy")
	waiting := submit(t, client, short(t))
	d.redeploy(t, append(slices.Clone(ownFiles), "origins=https://app.example.com", "logDays=7")...)
	after := submit(t, client, short(t))
	d.startWorker(t, d.ownCatalog())
	for _, job := range []servertest.Job{waiting, after} {
		if job = ended(t, client, job.ID); job.Status != "completed" {
			t.Errorf("a job ended as %+v %+v", job, job.Error)
		}
	}
	answer, err := client.Get(bounded(t), "/v1/files", "Origin", "https://app.example.com")
	if err != nil || answer.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("after the deployment: %v %v", err, answer.Header)
	}
	testOwnFiles(t, d)
}

func uploaded(t *testing.T, client *servertest.Client, content []byte) string {
	t.Helper()
	var file struct{ ID string }
	body, length, kind := servertest.Form{servertest.File("file", "clip.mp4", content)}.Encode()
	answer, err := client.Call(bounded(t), http.MethodPost, "/v1/files", body, length, "Content-Type", kind)
	if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &file) != nil {
		t.Fatalf("the upload: %v %d %s", err, answer.Status, answer.Body)
	}
	return file.ID
}
