package main_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cutroom/shared/testkit/patience"
	"cutroom/shared/testkit/servertest"
)

// TestACancelledEditStops cancels a job while it is edited: the engine's programs end,
// the job's event stream reports the end, and the worker takes the next job.
func TestACancelledEditStops(t *testing.T) {
	t.Parallel()
	ctx, data := steps(t), t.TempDir()
	server := start(t, data, "CUTROOM_WORKERS=1", "CUTROOM_CATALOG="+save(t, defaultCatalog(t)))
	client := server.Client()
	running, waiting := submit(ctx, t, client, fixtures.endless), submit(ctx, t, client, fixtures.tiny)
	told := make(chan servertest.Answer, 1)
	go func() {
		answer, _ := client.Get(ctx, "/v1/jobs/"+running+"/events") // an answer without a body fails below
		told <- answer
	}()
	eventually(t, "the job is edited by a program", func() bool { return len(processesOn(t, data)) > 0 })

	answer, err := client.Call(ctx, http.MethodDelete, "/v1/jobs/"+running, nil, 0)
	if err != nil || answer.Status != http.StatusOK || !bytes.Contains(answer.Body, []byte(`"code":"cancelled"`)) {
		t.Fatalf("the cancellation: %v, %d %s", err, answer.Status, answer.Body)
	}
	if events := string(patience.Receive(t, "told", told).Body); !strings.HasPrefix(events, "retry: 2000\n\n") ||
		!strings.HasSuffix(events, "data: "+string(answer.Body)+"\n\n") {
		t.Errorf("the events are %q, and end without %s", events, answer.Body)
	}
	if job, err := client.Await(bounded(t), waiting, nil); err != nil || job.Status != "completed" {
		t.Errorf("the next job: %+v, %v", job, err)
	}
	eventually(t, "the programs of the cancelled job are gone", func() bool { return len(processesOn(t, data)) == 0 })
	eventually(t, "its scratch folder is gone", func() bool {
		left, err := os.ReadDir(filepath.Join(data, "scratch"))
		return err == nil && len(left) == 0
	})
	list, err := client.Get(ctx, "/v1/jobs?status=failed")
	if err != nil || !strings.Contains(string(list.Body), running) || strings.Contains(string(list.Body), waiting) {
		t.Errorf("the list of failed jobs: %v, %s", err, list.Body)
	}
}
