package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cutroom/shared/testkit/programtest"
	"cutroom/shared/testkit/servertest"
)

// from is a checkout of the version that TestUpdateLosesNothing updates from: see CONTRIBUTING.md.
var from = flag.String("from", "", "a checkout of the version that is updated")

// TestUpdateLosesNothing updates a deployment of an earlier version to this one while its clients submit jobs
// and its worker runs them. Every job that either version accepted ends once and is counted once,
// whichever functions and workers handled it. Earlier results, files and keys still exist.
func TestUpdateLosesNothing(t *testing.T) {
	if *from == "" {
		t.Skip("no checkout of an earlier version is named by -from")
	}
	now, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	before, after := deployed{root: *from}, deployed{root: now}
	before.build(t, filepath.Join(folder, "before"))
	before.program = servertest.Program(filepath.Join(folder, "before", "cutroom"))
	before.worker = filepath.Join(folder, "before", "worker")
	before.run(t, nil, "go", "build", "-o", filepath.Dir(before.worker)+"/", "./cmd/cutroom", "./cmd/worker")
	after.build(t, filepath.Join(folder, "after"))
	if after.worker, err = programtest.Build(t.Context(), folder, "cutroom/cmd/worker"); err != nil {
		t.Fatal(err)
	}
	if after.program, err = servertest.Build(t.Context(), folder); err != nil {
		t.Fatal(err)
	}

	d := &before
	d.startCloud(t)
	d.redeploy(t)
	client := d.client(t, "update")
	file := uploaded(t, client, short(t))
	oldWorker := d.startWorker(t)
	done := submit(t, client, short(t))
	if ended := ended(t, client, done.ID); ended.Status != "completed" {
		t.Fatalf("the job ended as %+v", ended)
	}
	result, err := client.Get(bounded(t), "/v1/jobs/"+done.ID+"/content", "Accept", anything)
	if err != nil || result.Status != http.StatusOK {
		t.Fatalf("its result: %d, %v", result.Status, err)
	}

	// Clients submit before, during and after the update.
	clip := short(t)
	accepted, stopClients := make(chan string, 1000), make(chan struct{})
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			select {
			case <-stopClients:
				return
			case <-time.After(time.Second):
			}
			job, err := client.Submit(bounded(t), "gen-2.5",
				servertest.Form{servertest.File("data", "clip.mp4", clip), servertest.Text("prompt", "film noir")})
			if err != nil {
				t.Logf("rejected during the update: %v", err) // the client got this error
				continue
			}
			accepted <- job.ID
		}
	})
	after.cloud, after.calls, d = before.cloud, before.calls, &after
	d.redeploy(t)
	// Workers of both versions run concurrently until the old one is stopped.
	d.startWorker(t)
	sideBySide := submit(t, client, clip)
	oldWorker.stop(t)
	close(stopClients)
	clients.Wait()
	close(accepted)
	byReference, err := client.Submit(bounded(t), "gen-2.5",
		servertest.Form{servertest.File("data", "a.txt", []byte(file)), servertest.Text("prompt", "comic book")})
	if err != nil {
		t.Fatalf("a job with a file from before the update: %v", err)
	}
	jobs := []string{done.ID, sideBySide.ID, byReference.ID}
	for id := range accepted {
		jobs = append(jobs, id)
	}
	for _, id := range jobs {
		if job := ended(t, client, id); job.Status != "completed" {
			t.Errorf("a job of the update ended as %+v, %+v", job, job.Error)
		}
	}
	t.Logf("%d jobs were accepted and completed", len(jobs))
	if len(jobs) < 6 {
		t.Errorf("only %d jobs were accepted", len(jobs))
	}

	wantKept(t, client, []string{file}, done.ID, result.Body)
	until(t, "each job is counted once", func(ctx context.Context) (bool, error) {
		inference := &servertest.Client{URL: d.url(t, "InferenceUrl")}
		answer, err := inference.Call(ctx, http.MethodGet, "/v1/usage", nil, 0, "Authorization", "Bearer "+client.Key)
		var used struct {
			Data []struct {
				Jobs      int
				Completed int `json:"jobs_completed"`
			}
		}
		if err == nil {
			err = json.Unmarshal(answer.Body, &used)
		}
		counted, completed := 0, 0
		for _, row := range used.Data { // one row, or two if midnight has passed
			counted, completed = counted+row.Jobs, completed+row.Completed
		}
		if counted > len(jobs) || completed > len(jobs) {
			t.Fatalf("%d jobs are counted and %d as completed, want %d", counted, completed, len(jobs))
		}
		return counted == len(jobs) && completed == len(jobs), err
	})
}

func wantKept(t *testing.T, client *servertest.Client, files []string, done string, result []byte) {
	t.Helper()
	var listed struct{ Files []struct{ ID string } }
	answer, err := client.Get(bounded(t), "/v1/files")
	if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &listed) != nil ||
		len(listed.Files) != len(files) {
		t.Errorf("the files are %d %s, %v", answer.Status, answer.Body, err)
	}
	for _, id := range files {
		if answer, err := client.Get(bounded(t), "/v1/files/"+id); err != nil || answer.Status != http.StatusOK {
			t.Errorf("the file %s: %d, %v", id, answer.Status, err)
		}
	}
	content, err := client.Get(bounded(t), "/v1/jobs/"+done+"/content", "Accept", anything)
	if err != nil || !bytes.Equal(content.Body, result) {
		t.Errorf("the result of %s: %d, %v", done, content.Status, err)
	}
}
