package main

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/app/records"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/api"
)

// webhooks is the part of the server that calls webhooks.
type webhooks struct {
	targets webhook.Targets
	secrets webhook.Secrets
	log     records.Webhooks
	loop    *webhook.Loop
}

func newWebhooks(c *devCommand, kept *records.Records, secret []byte, now func() time.Time,
	logger *slog.Logger) (webhooks, error) {
	targets, err := setting.WebhookTargets(c.WebhookAllow)
	if err != nil {
		return webhooks{}, err
	}
	w := webhooks{targets: targets, secrets: webhook.NewSecrets(secret), log: kept.Webhooks}
	w.loop = &webhook.Loop{Queue: w.log, Now: now, Logger: logger, Deliverer: &webhook.Deliverer{
		Jobs: kept.Jobs, Store: w.log, Secrets: w.secrets, Body: api.WebhookBody, Now: now, Random: rand.Float64,
		Logger: logger,
		Sender: webhookhttp.New(webhookhttp.Config{Targets: targets, Now: now}),
	}}
	return w, nil
}
