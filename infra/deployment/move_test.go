package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// testMove moves what a server of one machine keeps to the deploy, by a command that is
// killed over and over. Then its client goes on there, with its key, and the jobs that had
// not ended do.
func testMove(t *testing.T, d *deployed) {
	d.drain(t)
	data := t.TempDir()
	server, err := d.program.Start(bounded(t), data, "CUTROOM_WORKERS=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	client := &servertest.Client{URL: server.URL(), Key: d.keyOf(t, data, "mover")}
	var files []string
	for range 4 {
		files = append(files, uploaded(t, client, short(t)))
	}
	done := submit(t, client, short(t))
	if ended := ended(t, client, done.ID); ended.Status != "completed" {
		t.Fatalf("the job ended as %+v", ended)
	}
	result, err := client.Content(bounded(t), done.ID)
	if err != nil {
		t.Fatal(err)
	}
	d.moves(t, "for a server that is stopped", data)
	if text := d.moves(t, "", data, "--dry-run"); !strings.Contains(text, "4 files") {
		t.Errorf("it would move %q", text)
	}
	d.moves(t, "", data, "--ahead")
	var open []string
	for {
		for range 3 {
			open = append(open, submit(t, client, short(t)).ID)
		}
		server.Kill()
		if text := d.moves(t, "", data, "--dry-run"); !strings.Contains(text, "and 0 that had not") {
			break
		}
		// This machine stood still, and all have ended.
		if server, err = d.program.Start(bounded(t), data, "CUTROOM_WORKERS=1"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Kill)
		client.URL = server.URL()
	}

	d.moveKilled(t, data)
	if text := d.moves(t, "", data, "--check"); !strings.Contains(text, "has what was moved") {
		t.Errorf("the check says %q", text)
	}
	d.moves(t, "", data)
	again, err := d.program.Launch(data)
	if err != nil {
		t.Fatal(err)
	}
	err = again.Ready(bounded(t))
	again.Kill()
	if err == nil || !strings.Contains(err.Error(), "moved to the stage") {
		t.Errorf("the folder is served: %v", err)
	}
	other := t.TempDir()
	d.keyOf(t, other, "mover")
	d.moves(t, "has keys there already", other)

	client.URL = d.url(t, "MediaUrl")
	wantMoved(t, client, files, done.ID, result.Body)
	d.startWorker(t)
	for _, id := range open {
		if job := ended(t, client, id); job.Status != "completed" {
			t.Errorf("the job %s that had not ended is %+v", id, job)
		}
	}
}

// wantMoved fails unless a client finds its files and the result of its job.
func wantMoved(t *testing.T, client *servertest.Client, files []string, done string, result []byte) {
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

// keyOf makes a key of an account in a data folder.
func (d *deployed) keyOf(t *testing.T, data, account string) string {
	t.Helper()
	ended, err := d.program.Run(bounded(t), nil, "keys", "create", "--account", account, "--data", data)
	if err != nil || ended.ExitCode != 0 {
		t.Fatalf("%+v, %v", ended, err)
	}
	return strings.TrimSpace(ended.Stdout)
}

// moves moves a data folder, which fails with a reason unless that is empty, and returns
// what was printed.
func (d *deployed) moves(t *testing.T, fails, data string, flags ...string) string {
	t.Helper()
	args := append([]string{"move", "--to-stage", stage, "--data", data}, flags...)
	ended, err := d.program.Run(bounded(t), d.environment(), args...)
	if err != nil || (ended.ExitCode != 0) != (fails != "") || !strings.Contains(ended.Stderr, fails) {
		t.Fatalf("cutroom %v: %+v, %v, want %q", args, ended, err, fails)
	}
	return ended.Stdout
}

// moveKilled moves a data folder by a command that is killed at one of its calls, each time
// at a later one, until it gets to its end. Half of these calls have their effect.
func (d *deployed) moveKilled(t *testing.T, data string) {
	t.Helper()
	target, err := url.Parse(d.cloud.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var left int
	var kill func()
	forward := httputil.NewSingleHostReverseProxy(target)
	calls := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		left--
		last, end := left == 0, kill
		mu.Unlock()
		if last && r.Method != http.MethodGet && rand.IntN(2) == 0 {
			forward.ServeHTTP(httptest.NewRecorder(), r)
		}
		if last {
			end()
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer calls.Close()
	environment := append(d.environment(), "AWS_ENDPOINT_URL="+calls.URL, "AWS_ENDPOINT_URL_S3="+calls.URL)
	killed := 0
	for at := 3; ; at += at / 3 {
		ctx, cancel := context.WithCancel(bounded(t))
		mu.Lock()
		left, kill = at, cancel
		mu.Unlock()
		ended, err := d.program.Run(ctx, environment, "move", "--to-stage", stage, "--data", data, "--check")
		if err == nil && ended.ExitCode != 0 {
			t.Fatalf("%+v", ended)
		}
		stopped := ctx.Err() != nil
		cancel()
		if err == nil {
			break
		}
		if !stopped {
			t.Fatal(err)
		}
		killed++
	}
	if killed < 3 {
		t.Errorf("it was killed %d times", killed)
	}
	t.Logf("the move was killed %d times", killed)
}

// uploaded stores a file and returns its id.
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
