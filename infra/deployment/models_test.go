package deployment

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// ownFiles is the CDK context for the deployer's own tiers and catalog, which includes a built-in model.
var ownFiles = []string{"catalog=infra/deployment/testdata/catalog.yaml", "tiers=infra/deployment/testdata/tiers.yaml"}

// ownCatalog returns the worker's catalog setting in a deployment with ownFiles.
func (d *deployed) ownCatalog() string {
	return "CUTROOM_CATALOG=" + filepath.Join(d.root, "infra", "deployment", "testdata", "catalog.yaml")
}

// testOwnFiles checks that both services have exactly the models of the deployer's catalog and
// apply the limits of the deployer's tier. The deployment must have ownFiles and a running worker.
func testOwnFiles(t *testing.T, d *deployed) {
	client := &servertest.Client{URL: d.url(t, "MediaUrl"), Key: d.key(t, "own-files", "--tier", "trial",
		"--tiers", filepath.Join(d.root, "infra", "deployment", "testdata", "tiers.yaml"))}
	testOwnModel(t, client)
	testOwnChat(t, &servertest.Client{URL: d.url(t, "InferenceUrl"), Key: client.Key})
}

func testOwnModel(t *testing.T, client *servertest.Client) {
	t.Helper()
	submit := func(model string) (servertest.Job, error) {
		return client.Submit(bounded(t), model,
			servertest.Form{servertest.File("data", "clip.mp4", short(t)), servertest.Text("prompt", "a pencil sketch")})
	}
	job, err := submit("studio-draw-latest")
	if err != nil {
		t.Fatal(err)
	}
	job = ended(t, client, job.ID)
	if job.Status != "completed" || job.Model != "studio-draw-1" {
		t.Errorf("the job of the deployer's model ended as %+v %+v", job, job.Error)
	}
	if _, err := submit("gen-2.1"); err == nil || !strings.Contains(err.Error(), `The model \"gen-2.1\" does not exist`) {
		t.Errorf("a model that the catalog lacks: %v", err)
	}
	quota, err := client.Get(bounded(t), "/v1/realtime/quota")
	if err != nil || !strings.Contains(string(quota.Body), `"limit":2,`) {
		t.Errorf("the sessions of a tier with two: %v %s", err, quota.Body)
	}
}

func testOwnChat(t *testing.T, client *servertest.Client) {
	t.Helper()
	bearer := []string{"Authorization", "Bearer " + client.Key, "Content-Type", "application/json", "Accept", anything}
	listed, err := client.Get(bounded(t), "/v1/models", bearer...)
	models := string(listed.Body)
	if err != nil || strings.Count(models, `"id"`) != 3 || !strings.Contains(models, `"studio-chat"`) {
		t.Errorf("the models: %v %s", err, models)
	}
	const chat = `{"model": "studio-chat", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 100}`
	answer, err := client.Call(bounded(t), http.MethodPost, "/v1/chat/completions", strings.NewReader(chat),
		int64(len(chat)), bearer...)
	if err != nil || answer.Status != http.StatusOK || !strings.Contains(string(answer.Body), `"completion_tokens":3,`) {
		t.Errorf("a chat of a tier with three tokens: %v %d %s", err, answer.Status, answer.Body)
	}
}
