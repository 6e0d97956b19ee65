package functions_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"cutroom/shared/domain/audit"
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/webhook"
)

// receiver receives a job's webhooks. It records the requests and responds with the configured status, by default
// 204.
type receiver struct {
	url string

	mu       sync.Mutex
	status   int
	requests []*http.Request
	bodies   []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusNoContent}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL + "/hook"
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests, r.bodies = append(r.requests, request), append(r.bodies, string(body))
	if r.status >= http.StatusInternalServerError {
		// The next attempt is due in 30 seconds instead of 5.
		w.Header().Set("Retry-After", "30")
	}
	w.WriteHeader(r.status)
}

// queued removes the due attempts from the queue and returns them. all is the number of attempts that were queued,
// due or not.
func (w *world) queued(t *testing.T) (due []webhook.ScheduledAttempt, all int) {
	t.Helper()
	client := sqs.NewFromConfig(w.cloud.Config())
	received, err := client.ReceiveMessage(t.Context(),
		&sqs.ReceiveMessageInput{QueueUrl: &w.turns.URL, MaxNumberOfMessages: 10})
	must(t, err)
	for _, message := range received.Messages {
		var turn webhook.ScheduledAttempt
		if err := json.Unmarshal([]byte(*message.Body), &turn); err != nil {
			t.Fatal(err)
		}
		due = append(due, turn)
	}
	names := []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}
	found, err := client.GetQueueAttributes(t.Context(),
		&sqs.GetQueueAttributesInput{QueueUrl: &w.turns.URL, AttributeNames: names})
	must(t, err)
	for _, name := range names {
		n, err := strconv.Atoi(found.Attributes[string(name)])
		must(t, err)
		all += n
	}
	return due, all
}

// notified checks the effects of the sample events: one signed webhook for the ended job, the first
// deliveries queued for a job and a warning, and a delivery that is not due yet.
func (w *world) notified(t *testing.T) {
	t.Helper()
	r := w.receiver
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) != 1 {
		t.Fatalf("the webhook received %d messages", len(r.requests))
	}
	var body struct {
		Type string
		Data struct {
			ID     string `json:"job_id"`
			Status string
		}
	}
	if err := json.Unmarshal([]byte(r.bodies[0]), &body); err != nil || body.Type != "job.failed" ||
		body.Data.ID != sampleHooked || body.Data.Status != "failed" {
		t.Errorf("the webhook received %s, %v", r.bodies[0], err)
	}
	if header := r.requests[0].Header; header.Get("Webhook-Id") != "msg_01K0000000000000000000H00K" ||
		header.Get("Webhook-Signature") == "" {
		t.Errorf("with the header %v", header)
	}
	due, all := w.queued(t)
	at := time.Date(2026, 11, 20, 12, 0, 9, 0, time.UTC)
	for _, want := range []webhook.ScheduledAttempt{
		webhook.First(sampleHooked, "acme", at), webhook.First("warn_0123456789abcdef0123456789abcdef", "acme", at),
	} {
		if !slices.Contains(due, want) {
			t.Errorf("due are %v, which lack %v", due, want)
		}
	}
	if all != 3 {
		t.Errorf("%d attempts are queued, want 3", all)
	}
}

func TestWarningIsDelivered(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	b := budget.Budget{
		ID: budget.ID{Account: "acme", Period: budget.Day, Unit: budget.Jobs}, Limit: 10, WarnURL: w.receiver.url,
	}
	must(t, w.budgets.Set(ctx, audit.Operator(time.Now()), b))
	counter := b.Counter(time.Now())
	_, err := w.budgets.Take(ctx, budget.Allocation{Counter: counter, ID: "lease-1"}, 10, 9, 9)
	must(t, err)
	noted, err := w.budgets.Warn(ctx, counter, 0, time.Now())
	must(t, err)
	id := noted.Warning.EventID()
	attempt, err := json.Marshal(webhook.First(id, "acme", noted.Warning.At))
	must(t, err)
	event, err := json.Marshal(map[string]any{"Records": []any{map[string]any{
		"messageId": "1", "body": string(attempt), "attributes": map[string]string{"ApproximateReceiveCount": "1"},
	}}})
	must(t, err)
	_, err = w.start(t, "webhooks").Invoke(ctx, event)
	must(t, err)
	r := w.receiver
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) != 1 || r.requests[0].Header.Get("Webhook-Id") != webhook.MessageID(id) ||
		r.requests[0].Header.Get("Webhook-Signature") == "" {
		t.Fatalf("received %d messages: %v", len(r.requests), r.requests)
	}
	want := `"data":{"account":"acme","percent":80,"key":null,"period":"day","unit":"jobs","currency":null,"limit":10,"used":9,"remaining":1,`
	if body := r.bodies[0]; !strings.HasPrefix(body, `{"type":"budget.warning","timestamp":"`) || !strings.Contains(body, want) {
		t.Errorf("received %s, which lacks %s", body, want)
	}
}

// A repeated event queues the next attempt again, because the function may have died before it did so.
func TestFailedWebhookIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.status = http.StatusInternalServerError
	f := w.start(t, "webhooks")
	began := time.Now()
	for _, c := range []struct {
		event            string
		requests, queued int
	}{
		{"due", 1, 1},
		// This attempt is already recorded, so it is not made again.
		{"repeated", 1, 2},
	} {
		event, err := os.ReadFile(filepath.Join("..", "events", "webhooks", c.event+".json"))
		must(t, err)
		if _, err := f.Invoke(t.Context(), event); err != nil {
			t.Fatal(err)
		}
		due, queued := w.queued(t)
		if len(w.receiver.requests) != c.requests || queued != c.queued {
			t.Errorf("%s: received %d messages, %d attempts are queued", c.event, len(w.receiver.requests), queued)
		}
		for _, attempt := range due { // delayed by 30 seconds
			if attempt.Number != 2 || attempt.At.Before(began.Add(30*time.Second)) || attempt.At.After(time.Now()) {
				t.Errorf("%s: %v is due", c.event, attempt)
			}
		}
	}
}
