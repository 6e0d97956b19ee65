// Function webhooks notifies the receivers that submissions name of the ends of their
// jobs. The stream of the jobs' table starts it for jobs that have ended, and a queue
// that holds each next attempt until it is due.
package main

import (
	"context"
	"math/rand/v2"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/app/eventapp"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/api"
)

func main() { eventapp.Main(webhooks) }

func webhooks(p *eventapp.Parts) func(context.Context, event) (answer, error) {
	records, table := dynamo.NewClient(p.AWS), p.Required("CUTROOM_JOBS_TABLE")
	secret := secrets.NewSecret(p.AWS, p.Required("CUTROOM_SECRET_ARN"))
	h := &handler{
		queue: sqsqueue.NewScheduledAttempts(p.AWS, p.Required("CUTROOM_WEBHOOK_QUEUE")), now: time.Now, logger: p.Logger,
		deliverer: &webhook.Deliverer{
			Jobs: dynamo.NewRuns(records, table), Store: dynamo.NewWebhooks(records, table),
			Sender:  webhookhttp.New(webhookhttp.Config{Targets: p.WebhookTargets(), Now: time.Now}),
			Secrets: webhook.NewSecretsFrom(secret.Value), Body: api.WebhookBody,
			Now: time.Now, Random: rand.Float64, Logger: p.Logger,
		},
	}
	return h.handle
}
