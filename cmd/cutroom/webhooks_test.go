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

	"cutroom/shared/testkit/await"
	"cutroom/shared/testkit/servertest"
)

type delivered struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// Receivers verify the messages with the Standard Webhooks library.
func TestWebhooksSurviveKill(t *testing.T) {
	t.Parallel()
	ctx, data := steps(t), t.TempDir()
	// The receiver does not respond until the server is dead. It gets one message, or several if a job takes longer
	// than the delivery timeout.
	dead := make(chan struct{})
	messages := map[string]chan delivered{"/hook": make(chan delivered, 10), "/budget": make(chan delivered, 10)}
	var counts [2]atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		message := delivered{Body: string(body), Headers: map[string]string{}}
		for name := range r.Header {
			message.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		count := &counts[0]
		if r.URL.Path == "/budget" {
			count = &counts[1]
		}
		select {
		case <-dead:
		default:
			messages[r.URL.Path] <- message
			<-dead
			return
		}
		count.Add(1)
		messages[r.URL.Path] <- message
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	settings := []string{"CUTROOM_WORKERS=1", "CUTROOM_CATALOG=" + smallCatalog(t), "CUTROOM_WEBHOOK_ALLOW=127.0.0.1"}
	server := start(t, data, settings...)
	client := server.Client()
	budget := []string{"budgets", "set", "--account", "dev", "--period", "month", "--unit", "jobs", "--limit", "1"}
	for _, to := range []struct {
		url  string
		code int
	}{{"http://10.0.0.1/budget", 1}, {receiver.URL + "/budget?token=1", 0}} {
		ended, err := program.Run(ctx, append(settings, "CUTROOM_DATA="+data), append(budget, "--warn-url", to.url)...)
		if err != nil || ended.ExitCode != to.code || to.code == 0 && !strings.Contains(ended.Stdout, to.url) {
			t.Fatalf("%s: %+v, %v", to.url, ended, err)
		}
	}
	job, err := client.Submit(ctx, "gen-pro-t2v", servertest.Form{
		servertest.Text("prompt", "waves"), servertest.Text("webhook_url", receiver.URL+"/hook?token=1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	next := func(path string) (message delivered) {
		t.Helper()
		select {
		case message = <-messages[path]:
		case <-ctx.Done():
			t.Fatalf("no message arrived at %s; the job is %v", path, job)
		}
		return message
	}
	warning, first := next("/budget"), next("/hook")
	server.Kill()
	for _, unanswered := range messages {
		for len(unanswered) > 0 {
			await.Receive(t, "unanswered", unanswered)
		}
	}
	close(dead)

	server = start(t, data, settings...)
	client = server.Client()
	second, again := next("/hook"), next("/budget")
	if first.Body != second.Body || first.Headers["webhook-id"] != second.Headers["webhook-id"] {
		t.Errorf("received %+v, then %+v", first, second)
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
		t.Errorf("received %s of %s, %v", body.Data, status.Body, err)
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
		return len(log.Deliveries) > 0 && log.Deliveries[len(log.Deliveries)-1].Status != nil
	})
	for i, d := range log.Deliveries {
		delivered := d.Status != nil && *d.Status == 204 && d.Error == nil && d.NextAttemptAt == nil
		if d.ID != second.Headers["webhook-id"] || d.Attempt != i+1 || delivered != (i == len(log.Deliveries)-1) {
			t.Errorf("the log is %+v", log)
		}
	}
	if warning.Body != again.Body || warning.Headers["webhook-id"] != again.Headers["webhook-id"] ||
		!strings.Contains(warning.Body, `"data":{"account":"dev","percent":100,"key":null,"period":"month","unit":"jobs",`+
			`"currency":null,"limit":1,"used":1,"remaining":0,`) {
		t.Errorf("warned with %+v, then %+v", warning, again)
	}
	if job, budget := counts[0].Load(), counts[1].Load(); job != 1 || budget != 1 {
		t.Errorf("the receivers accepted the messages %d and %d times", job, budget)
	}

	answer, err := client.Get(ctx, "/v1/webhooks/secret")
	if err != nil || json.Unmarshal(answer.Body, &second) != nil {
		t.Fatalf("the secret: %v, %s", err, answer.Body)
	}
	again.Secret = second.Secret
	for kind, message := range map[string]delivered{body.Type: second, "budget.warning": again} {
		input, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		verify := exec.CommandContext(ctx, pythonProgram(t, "python"), filepath.Join("testdata", "verify_webhook.py"))
		verify.Stdin = strings.NewReader(string(input))
		if out, err := verify.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != kind {
			t.Errorf("the receiver failed: %v: %s", err, out)
		}
	}
	if log := server.Log(); strings.Contains(log, "token=1") || strings.Contains(log, second.Secret) {
		t.Error("the log contains the URL or the secret")
	}
	stop(t, server)
}
