package dynamo_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/domain/webhook/webhooktest"
	"cutroom/shared/testkit/awstest"
)

func TestWebhooksConform(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	webhooktest.Run(t, func(t *testing.T) webhooktest.Harness {
		client, table := dynamo.NewClient(cloud.Config()), cloud.MakeTable(t, "jobs")
		return webhooktest.Harness{
			Store:   dynamo.NewWebhooks(client, table),
			Jobs:    dynamo.NewJobs(dynamo.NewRuns(client, table), &handedOver{}, nil, time.Now),
			Budgets: dynamo.NewBudgets(client, cloud.MakeTable(t, "usage"), &machine{}, rand.Text),
		}
	})
}

func TestWebhookCallsMatchDocumentation(t *testing.T) {
	t.Parallel()
	cloud := local.Cloud(t)
	proxy := cloud.Proxy(t, 1, awstest.Faults{})
	store := dynamo.NewWebhooks(dynamo.NewClient(proxy.Config()), cloud.MakeTable(t, "jobs"))
	asDocumented(t, proxy, "Webhooks", calls{
		{"Record", func() error {
			return store.Record(t.Context(), webhook.Event{ID: "job_1", FirstBy: time.Now()},
				webhook.Attempt{Number: 1, At: time.Now(), Status: 204})
		}},
		{"Attempts", func() error {
			_, err := store.Attempts(t.Context(), "job_1")
			return err
		}},
	})
}

func TestEndOfJobWithWebhookCreatesAttempt(t *testing.T) {
	image := func(change ...string) map[string]events.DynamoDBAttributeValue {
		values := map[string]string{
			"id": "job_1", "part": "record", "account": "acme", "status": "completed", "webhook": "https://example.com/hook",
			"completed_at": "2026-11-20T12:00:09Z",
		}
		for i := 0; i < len(change); i += 2 {
			values[change[i]] = change[i+1]
		}
		made := map[string]events.DynamoDBAttributeValue{}
		for name, value := range values {
			if value != "" {
				made[name] = events.NewStringAttribute(value)
			}
		}
		return made
	}
	want := webhook.First("job_1", "acme", time.Date(2026, 11, 20, 12, 0, 9, 0, time.UTC))
	for _, status := range []string{"completed", "failed"} {
		if turn, ended := dynamo.EndedWithWebhook(image("status", status)); !ended || turn != want {
			t.Errorf("a %s job creates %+v, %t", status, turn, ended)
		}
	}
	for _, change := range [][]string{{"status", "processing"}, {"webhook", ""}, {"part", "request"}, {"part", "webhook"},
		{"id", ""}, {"completed_at", "soon"}} {
		if turn, ended := dynamo.EndedWithWebhook(image(change...)); ended {
			t.Errorf("with %v it creates %+v", change, turn)
		}
	}
	if _, ended := dynamo.EndedWithWebhook(nil); ended {
		t.Error("an expired attempt creates an attempt")
	}
}

func TestNewWarningCreatesAttempt(t *testing.T) {
	image := func() map[string]events.DynamoDBAttributeValue {
		return map[string]events.DynamoDBAttributeValue{
			"part": events.NewStringAttribute("warning"), "warning": events.NewStringAttribute("warn_1"),
			"account": events.NewStringAttribute("acme"), "noted_at": events.NewNumberAttribute("1795176009000"),
		}
	}
	want := webhook.First("warn_1", "acme", time.UnixMilli(1795176009000).UTC())
	if turn, ok := dynamo.NewWarning(image()); !ok || turn != want {
		t.Errorf("a warning creates %+v, %t", turn, ok)
	}
	for name, value := range map[string]events.DynamoDBAttributeValue{
		"part": events.NewStringAttribute("used"), "warning": events.NewStringAttribute("job_1"),
		"noted_at": events.NewStringAttribute("1795176009000"),
	} {
		changed := image()
		changed[name] = value
		if turn, ok := dynamo.NewWarning(changed); ok {
			t.Errorf("with another %s it creates %+v", name, turn)
		}
	}
	if _, ok := dynamo.NewWarning(nil); ok {
		t.Error("an expired attempt creates an attempt")
	}
}

// Version 0.1.0 stored some jobs in another index partition.
func TestAttemptOfJobInOtherPartitionHasItsOwner(t *testing.T) {
	image := map[string]events.DynamoDBAttributeValue{}
	for name, value := range map[string]string{
		"id": "job_1", "part": dynamo.RecordPart, "status": "completed", "webhook": "https://hooks.example",
		"account": "acme#3", "owner": "acme", "completed_at": "2026-11-23T17:00:00.000Z",
	} {
		image[name] = events.NewStringAttribute(value)
	}
	first, there := dynamo.EndedWithWebhook(image)
	if !there || first.Account != "acme" {
		t.Errorf("the attempt is %+v, %v", first, there)
	}
}
