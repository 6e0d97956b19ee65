package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/api"
)

const hook = "https://example.com/hook"

// A synchronous call does not accept a webhook.
func TestJobAcceptsWebhook(t *testing.T) {
	w := newWorld(t, setup{})
	for _, model := range []string{"gen-restyle-2", "gen-2.5", "gen-vton-latest", "gen-clip"} {
		id := w.accepted(w.post(model, studio, upload("data", clip(t)), text("prompt", "x"), text("webhook_url", hook)))
		if j := w.record(id); j.Webhook != hook || j.Request.Options["webhook_url"] != nil {
			t.Errorf("%s has the webhook %q and the options %v", model, j.Webhook, j.Request.Options)
		}
	}
	a := w.request("POST", "/v1/jobs/gen-pro-t2v", studio,
		strings.NewReader("prompt=x&webhook_url=https%3A%2F%2Fexample.com%2Fhook"),
		"Content-Type: application/x-www-form-urlencoded")
	if j := w.record(w.accepted(a)); j.Webhook != hook {
		t.Errorf("urlencoded: got %q", j.Webhook)
	}
	for _, absent := range [][]part{nil, {text("webhook_url", "")}} {
		if j := w.record(w.accepted(w.post("gen-pro-t2v", studio, append(absent, text("prompt", "x"))...))); j.Webhook != "" {
			t.Errorf("without a webhook: got %q", j.Webhook)
		}
	}
}

func TestInvalidWebhookURLIsRejected(t *testing.T) {
	w := newWorld(t, setup{})
	long := "https://example.com/" + strings.Repeat("a", 2029)
	for value, message := range map[string]string{
		"hook": "Value error, The URL must be absolute, such as " +
			"https://example.com/hook.",
		"http://example.com/":                       "Value error, The URL must begin with https://.",
		"https://a:b@example.com":                   "Value error, The URL must not contain a user name or a password.",
		"https://example.com/#x":                    "Value error, The URL must not have a fragment.",
		"https://127.0.0.1/":                        "Value error, The URL's host is not on the public internet.",
		"https://169.254.169.254/latest/meta-data/": "Value error, The URL's host is not on the public internet.",
		"https://[::ffff:10.0.0.1]/":                "Value error, The URL's host is not on the public internet.",
		"https://0x7f.1/": "Value error, The URL's host must be a name, or an address in its " +
			"usual notation.",
		"https://example.com:25/":  "Value error, The URL's port is not allowed.",
		long:                       "String should have at most 2048 characters",
		"https://example.com/\xff": "Value error, The value is not valid UTF-8.",
	} {
		found := w.problems(w.post("gen-2.5", studio, upload("data", clip(t)), text("seed", "-1"),
			text("webhook_url", value)))
		if len(found) != 2 || found[0].Loc[1] != "seed" || found[1].Msg != message ||
			strings.Join(found[1].Loc, ".") != "body.webhook_url" {
			t.Errorf("%.60q: %+v", value, found)
		}
	}
	w.accepted(w.post("gen-pro-t2v", studio, text("prompt", "x"), text("webhook_url", long[:2048])))
	if a := w.post("gen-pro-t2v", studio, text("prompt", "x"), text("webhook_url", hook),
		text("webhook_url", hook)); a.status != 422 {
		t.Errorf("two webhooks: %d %s", a.status, a.body)
	}
	w.nothingStays()
}

func TestWebhookMessageShowsTheJob(t *testing.T) {
	w := newWorld(t, setup{})
	completed, failed := w.submit(studio), w.submit(studio)
	w.start(completed)
	w.complete(completed, "the result", "video/mp4")
	w.start(failed)
	w.fail(failed, job.Failure{Code: job.InvalidInput, Message: "The video <x> cannot be decoded."})
	for id, kind := range map[string]string{completed: "job.completed", failed: "job.failed"} {
		message, err := api.WebhookBody(w.record(id))
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Type, Timestamp string
			Data            json.RawMessage
		}
		if err := json.Unmarshal(message, &body); err != nil {
			t.Fatal(err)
		}
		var shown struct {
			CompletedAt string `json:"completed_at"`
		}
		if err := json.Unmarshal(body.Data, &shown); err != nil {
			t.Fatal(err)
		}
		if status := w.get("/v1/jobs/"+id, studio).body; body.Type != kind || body.Timestamp != shown.CompletedAt ||
			string(body.Data) != status {
			t.Errorf("the message is %s, the status %s", message, status)
		}
	}
}

func TestWebhookLogShowsAttempts(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.accepted(w.post("gen-pro-t2v", studio, text("prompt", "x"), text("webhook_url", hook)))
	path := "/v1/jobs/" + id + "/deliveries"
	check := func(want string) {
		t.Helper()
		if a := w.get(path, studio); a.status != 200 || a.body != want {
			t.Errorf("got %d %s, want %s", a.status, a.body, want)
		}
	}
	check(`{"deliveries":[]}`)
	w.start(id)
	w.fail(id, job.TimeoutFailure())
	check(`{"deliveries":[]}`)
	j, at := w.record(id), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, a := range []webhook.Attempt{
		{Number: 1, At: at, Duration: 10 * time.Second, Error: "The receiver took too long.", Next: at.Add(15 * time.Second)},
		{Number: 2, At: at.Add(15 * time.Second), Duration: 12 * time.Millisecond, Status: 204},
	} {
		if err := w.hooks.Record(t.Context(), webhook.Event{ID: j.ID, FirstBy: j.Deadline}, a); err != nil {
			t.Fatal(err)
		}
	}
	message := strings.Replace(id, "job_", "msg_", 1)
	check(`{"deliveries":[` +
		`{"id":"` + message + `","attempt":1,"at":"2026-11-20T12:00:00.000Z","status":null,` +
		`"error":"The receiver took too long.","duration_ms":10000,"next_attempt_at":"2026-11-20T12:00:15.000Z"},` +
		`{"id":"` + message + `","attempt":2,"at":"2026-11-20T12:00:15.000Z","status":204,"error":null,"duration_ms":12,` +
		`"next_attempt_at":null}]}`)
	for path, key := range map[string]string{path: rival, "/v1/jobs/job_x/deliveries": studio} {
		if a := w.get(path, key); a.status != 404 || a.detail() != "Job not found." {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}
