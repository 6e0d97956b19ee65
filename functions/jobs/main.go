// Function jobs accepts, shows, cancels, deletes, lists and shares jobs: POST, GET and DELETE
// /v1/jobs/{id}, GET /v1/jobs, and POST /v1/jobs/{id}/shares. It also serves accounts' webhook
// routes: GET /v1/jobs/{id}/deliveries and /v1/webhooks/secret, and at the inference address /v1/videos,
// /v1/videos/edits, /v1/videos/{id} and /v1/videos/{id}/remix.
package main

import (
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/service/api"
)

func main() { awsapp.Serve(jobs, api.Jobs, api.Webhooks, api.OpenAIVideos) }

func jobs(f *awsapp.Parts) {
	bucket, queues := f.Bucket(), f.Queues()
	secret := secrets.NewSecret(f.AWS, f.Required("CUTROOM_SECRET_ARN"))
	f.AcceptJobs(stepfn.NewMachine(f.AWS, f.Required("CUTROOM_STATE_MACHINE"), queues),
		sqsqueue.NewLengths(f.AWS, queues), job.NewCursorsFrom(secret.Value))
	f.Config.Blobs = bucket
	f.Config.Shares = job.NewSharesFrom(secret.Value, time.Now)
	f.Config.Files = f.Files(bucket, file.Cursors{})
	f.Config.WebhookTargets = f.WebhookTargets()
	f.Config.Fetch = webhookhttp.NewFetcher(webhookhttp.Config{Targets: f.Config.WebhookTargets})
	f.Config.WebhookLog = dynamo.NewWebhooks(f.Records, f.Required("CUTROOM_JOBS_TABLE"))
	f.Config.WebhookSecrets = webhook.NewSecretsFrom(secret.Value)
}
