// Function webhooks sends webhooks for ended jobs and budget warnings. The jobs table's stream invokes it for
// ended jobs, the usage table's stream for warnings, and a queue for later attempts when they are due.
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
	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/api"
)

func main() { eventapp.Main(webhooks) }

func webhooks(p *eventapp.Parts) func(context.Context, event) (answer, error) {
	records, table := dynamo.NewClient(p.AWS), p.Required("CUTROOM_JOBS_TABLE")
	secret := secrets.NewSecret(p.AWS, p.Required("CUTROOM_SECRET_ARN"))
	known := p.Catalog() // may be nil until the settings have been checked
	h := &handler{
		queue: sqsqueue.NewScheduledAttempts(p.AWS, p.Required("CUTROOM_WEBHOOK_QUEUE")), now: time.Now, logger: p.Logger,
		deliverer: &webhook.Deliverer{
			Events: webhook.Events{
				Jobs: dynamo.NewRuns(records, table), JobBody: api.WebhookBody,
				Warnings:    dynamo.NewWarnings(records, p.Required("CUTROOM_USAGE_TABLE")),
				WarningBody: func(w budget.Warning) ([]byte, error) { return api.WarningBody(known.Currency)(w) },
			},
			Store:   dynamo.NewWebhooks(records, table),
			Sender:  webhookhttp.New(webhookhttp.Config{Targets: p.WebhookTargets(), Now: time.Now}),
			Secrets: webhook.NewSecretsFrom(secret.Value),
			Now:     time.Now, Random: rand.Float64, Logger: p.Logger,
		},
	}
	return h.handle
}
