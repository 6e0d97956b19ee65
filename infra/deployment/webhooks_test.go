package deployment

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"cutroom/shared/testkit/patience"
	"cutroom/shared/testkit/servertest"
)

// testWebhooks checks that the stream of the jobs' table reports a job's end, that
// the queue delivers the attempt, and that a failed attempt is repeated.
func testWebhooks(t *testing.T, d *deployed) {
	ctx := patience.TestContext(t)
	client := d.client(t, "webhooks")
	type message struct{ id, body string }
	told := make(chan message, 10)
	var attempts atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- message{r.Header.Get("Webhook-Id"), string(body)}
		// There may be more than two attempts: streams and queues deliver at least
		// once.
		if attempts.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	job, err := client.Submit(ctx, "gen-pro-t2v",
		servertest.Form{servertest.Text("prompt", "waves"), servertest.Text("webhook_url", receiver.URL)})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := client.Call(ctx, http.MethodDelete, "/v1/jobs/"+job.ID, nil, 0); err != nil ||
		answer.Status != http.StatusOK {
		t.Fatalf("the cancellation: %v %d %s", err, answer.Status, answer.Body)
	}
	for range 2 {
		select {
		case m := <-told:
			if m.id != strings.Replace(job.ID, "job_", "msg_", 1) || !strings.Contains(m.body, `"type":"job.failed"`) ||
				!strings.Contains(m.body, job.ID) {
				t.Errorf("told %+v", m)
			}
		case <-ctx.Done():
			t.Fatal("the receiver was not told")
		}
	}
	var log struct {
		Deliveries []struct{ Status int }
	}
	patience.Until(t, "the log has two attempts", func() bool {
		answer, err := client.Get(ctx, "/v1/jobs/"+job.ID+"/deliveries")
		if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &log) != nil {
			t.Fatalf("the log: %v %d %s", err, answer.Status, answer.Body)
		}
		return len(log.Deliveries) >= 2
	}, func() any { return log })
	// The first has no status where this machine stood still for as long as a receiver may take.
	first, second := log.Deliveries[0].Status, log.Deliveries[1].Status
	if first != http.StatusServiceUnavailable && first != 0 || second != http.StatusNoContent {
		t.Errorf("the log is %+v", log)
	}
	secret, err := client.Get(ctx, "/v1/webhooks/secret")
	if err != nil || !strings.Contains(string(secret.Body), "whsec_") {
		t.Errorf("the secret: %v %s", err, secret.Body)
	}
}
