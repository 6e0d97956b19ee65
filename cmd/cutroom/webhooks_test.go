package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// told is a message as its receiver gets it.
type told struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// A receiver is told of a job's end, though the server dies while it tells it, and
// verifies the message by the library of Standard Webhooks.
func TestAWebhookSurvivesTheServer(t *testing.T) {
	t.Parallel()
	ctx, data := bounded(t), t.TempDir()
	// The first message gets no answer until the server is dead.
	messages, dead := make(chan told, 10), make(chan struct{})
	var count atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		message := told{Body: string(body), Headers: map[string]string{}}
		for name := range r.Header {
			message.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		first := count.Add(1) == 1
		messages <- message
		if first {
			<-dead
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	settings := []string{"CUTROOM_WORKERS=1", "CUTROOM_CATALOG=" + smallCatalog(t), "CUTROOM_WEBHOOK_ALLOW=127.0.0.1"}
	server := start(t, data, settings...)
	client := server.Client()
	job, err := client.Submit(ctx, "gen-pro-t2v", servertest.Form{
		servertest.Text("prompt", "waves"), servertest.Text("webhook_url", receiver.URL+"/hook?token=1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	next := func() (message told) {
		t.Helper()
		select {
		case message = <-messages:
		case <-ctx.Done():
			t.Fatalf("no message has come; the job is %v", job)
		}
		return message
	}
	first := next()
	server.Kill()
	close(dead)

	server = start(t, data, settings...)
	client = server.Client()
	second := next()
	if first.Body != second.Body || first.Headers["webhook-id"] != second.Headers["webhook-id"] {
		t.Errorf("told %+v, then %+v", first, second)
	}
	var body struct {
		Type string
		Data json.RawMessage
	}
	if err := json.Unmarshal([]byte(second.Body), &body); err != nil {
		t.Fatal(err)
	}
	status, err := client.Get(ctx, "/v1/jobs/"+job.ID)
	if err != nil || string(status.Body) != string(body.Data) {
		t.Errorf("told %s of %s, %v", body.Data, status.Body, err)
	}

	var log struct {
		Deliveries []struct {
			ID            string
			Attempt       int
			Status        *int
			Error         *string
			NextAttemptAt *string `json:"next_attempt_at"`
		}
	}
	eventually(t, "the attempt is in the log", func() bool {
		answer, err := client.Get(ctx, "/v1/jobs/"+job.ID+"/deliveries")
		if err != nil || json.Unmarshal(answer.Body, &log) != nil {
			t.Fatalf("the log: %v, %s", err, answer.Body)
		}
		return len(log.Deliveries) > 0
	})
	if d := log.Deliveries[0]; len(log.Deliveries) != 1 || d.ID != second.Headers["webhook-id"] || d.Attempt != 1 ||
		d.Status == nil || *d.Status != 204 || d.Error != nil || d.NextAttemptAt != nil {
		t.Errorf("the log is %+v", log)
	}
	if count.Load() != 2 {
		t.Errorf("the receiver was told %d times", count.Load())
	}

	answer, err := client.Get(ctx, "/v1/webhooks/secret")
	if err != nil || json.Unmarshal(answer.Body, &second) != nil {
		t.Fatalf("the secret: %v, %s", err, answer.Body)
	}
	input, err := json.Marshal(second)
	if err != nil {
		t.Fatal(err)
	}
	verify := exec.CommandContext(ctx, pythonProgram(t, "python"), filepath.Join("testdata", "verify_webhook.py"))
	verify.Stdin = strings.NewReader(string(input))
	if out, err := verify.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != body.Type {
		t.Errorf("the receiver says %v: %s", err, out)
	}
	if log := server.Log(); strings.Contains(log, "token=1") || strings.Contains(log, second.Secret) {
		t.Error("the log has the URL, or the secret")
	}
	stop(t, server)
}
