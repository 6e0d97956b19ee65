package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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
	server.Kill()
	files, server = d.moveBegun(t, data, files)
	client.URL = server.URL()
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

// moveBegun moves a data folder by a command that is killed when it writes usage, which is
// after the files. Then it serves the folder again, and deletes and stores a file there. It
// returns the files that there are.
func (d *deployed) moveBegun(t *testing.T, data string, files []string) ([]string, *servertest.Server) {
	t.Helper()
	killed := d.moveUntil(t, data, func(r *http.Request, body []byte) bool {
		return strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") && bytes.Contains(body, []byte("-usage"))
	})
	if !killed {
		t.Fatal("the move wrote no usage")
	}
	server, err := d.program.Start(bounded(t), data, "CUTROOM_WORKERS=1")
	if err != nil {
		t.Fatalf("the server does not start between two attempts: %v", err)
	}
	t.Cleanup(server.Kill)
	client := &servertest.Client{URL: server.URL(), Key: d.keyOf(t, data, "mover")}
	answer, err := client.Call(bounded(t), http.MethodDelete, "/v1/files/"+files[0], nil, 0)
	if err != nil || answer.Status/100 != 2 {
		t.Fatalf("delete a file: %d %s, %v", answer.Status, answer.Body, err)
	}
	if job := ended(t, client, submit(t, client, short(t)).ID); job.Status != "completed" {
		t.Fatalf("the job ended as %+v", job)
	}
	return append(files[1:], uploaded(t, client, short(t))), server
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
	killed := 0
	for at := 3; ; at += at / 3 {
		left := at
		if !d.moveUntil(t, data, func(*http.Request, []byte) bool { left--; return left == 0 }) {
			break
		}
		killed++
	}
	if killed < 3 {
		t.Errorf("it was killed %d times", killed)
	}
	t.Logf("the move was killed %d times", killed)
}

// moveUntil moves a data folder by a command that is killed at the first of its calls that
// last is true of, and reports whether there was one. Half of these calls have their effect.
func (d *deployed) moveUntil(t *testing.T, data string, last func(r *http.Request, body []byte) bool) bool {
	t.Helper()
	target, err := url.Parse(d.cloud.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(bounded(t))
	defer kill()
	var mu sync.Mutex
	forward := httputil.NewSingleHostReverseProxy(target)
	calls := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it was killed
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		dies := ctx.Err() == nil && last(r, body)
		mu.Unlock()
		if dies && r.Method != http.MethodGet && rand.IntN(2) == 0 {
			forward.ServeHTTP(httptest.NewRecorder(), r)
		}
		if dies {
			kill()
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer calls.Close()
	environment := append(d.environment(), "AWS_ENDPOINT_URL="+calls.URL, "AWS_ENDPOINT_URL_S3="+calls.URL)
	ended, err := d.program.Run(ctx, environment, "move", "--to-stage", stage, "--data", data, "--check")
	switch {
	case err == nil && ended.ExitCode != 0:
		t.Fatalf("%+v", ended)
	case err != nil && ctx.Err() == nil:
		t.Fatal(err)
	}
	return err != nil
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
