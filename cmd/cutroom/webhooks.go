package main

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"cutroom/shared/adapter/sqlite"
	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/api"
)

type webhookFlags struct {
	WebhookAllow []string `env:"CUTROOM_WEBHOOK_ALLOW" help:"Private hosts and CIDR blocks, such as 10.1.0.0/16, that webhooks may call, even over http, separated by commas (${env})."`
}

type webhooks struct {
	targets webhook.Targets
	secrets webhook.Secrets
	log     *sqlite.Webhooks
	loop    *webhook.Loop
}

func newWebhooks(c *devCommand, kept *sqlite.DB, warnings webhook.Warnings, currency string, secret []byte,
	now func() time.Time, logger *slog.Logger) (webhooks, error) {
	targets, err := setting.WebhookTargets(c.WebhookAllow)
	if err != nil {
		return webhooks{}, err
	}
	w := webhooks{targets: targets, secrets: webhook.NewSecrets(secret), log: kept.Webhooks()}
	w.loop = &webhook.Loop{Queue: w.log, Now: now, Logger: logger, Deliverer: &webhook.Deliverer{
		Events: webhook.Events{
			Jobs: kept.Jobs(), JobBody: api.WebhookBody, Warnings: warnings, WarningBody: api.WarningBody(currency),
		},
		Store: w.log, Secrets: w.secrets, Now: now, Random: rand.Float64, Logger: logger,
		Sender: webhookhttp.New(webhookhttp.Config{Targets: targets, Now: now}),
	}}
	return w, nil
}
