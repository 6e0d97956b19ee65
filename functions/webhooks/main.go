// Function webhooks tells the receivers that submissions name of the ends of their
// jobs. It is started by the stream of the jobs' table, for jobs that have ended,
// and by the queue that holds each next attempt until it is due.
package main

import (
	"context"
	"math/rand/v2"
	"os"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/app/setting"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/platform/awsconfig"
	"cutroom/shared/platform/lambdaevent"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/api"
)

func main() { lambdaevent.Main(webhooks) }

func webhooks() (func(context.Context, event) (answer, error), error) {
	config, err := awsconfig.FromEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	env := setting.NewEnvironment(os.Getenv)
	records, table := dynamo.NewClient(config), env.Required("CUTROOM_JOBS_TABLE")
	secret := secrets.NewSecret(config, env.Required("CUTROOM_SECRET_ARN"))
	logger := lambdahttp.NewLogger(os.Stdout)
	h := &handler{
		queue: sqsqueue.NewScheduledAttempts(config, env.Required("CUTROOM_WEBHOOK_QUEUE")), now: time.Now, logger: logger,
		deliverer: &webhook.Deliverer{
			Jobs: dynamo.NewRuns(records, table), Store: dynamo.NewWebhooks(records, table),
			Sender:  webhookhttp.New(webhookhttp.Config{Targets: env.WebhookTargets(), Now: time.Now}),
			Secrets: webhook.NewSecretsFrom(secret.Value), Body: api.WebhookBody,
			Now: time.Now, Random: rand.Float64, Logger: logger,
		},
	}
	return h.handle, env.Err()
}
