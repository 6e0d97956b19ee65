package main

import (
	"crypto/rand"
	"time"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/adapter/secrets"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/app/c2pa/verifying"
	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/webhook"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/api"
)

const (
	// verifyTime is the timeout for a verification. It is short enough for a shutdown to wait for it.
	verifyTime = shutdownTime - 10*time.Second
	// readerMemory is the maximum memory of the process that reads a file, in bytes: half of the task's memory.
	readerMemory = 1 << 30
)

// newSurface configures every route of the media service except signed uploads, which go directly to the bucket. It
// also has OpenAI's image and video routes, because the inference API accepts only small bodies.
// During a shutdown, requests that wait for a job continue to wait, because the workers run elsewhere.
func newSurface(p *awsapp.Parts) (httpserver.Config, error) {
	bucket, queues := p.Bucket(), p.Queues()
	secret := secrets.NewSecret(p.AWS, p.Required("CUTROOM_SECRET_ARN"))
	p.AcceptJobs(stepfn.NewMachine(p.AWS, p.Required("CUTROOM_STATE_MACHINE"), queues), sqsqueue.NewLengths(p.AWS, queues),
		job.NewCursorsFrom(secret.Value))
	signer := p.Signer(bucket)
	p.Config.Blobs, p.Config.Signer = bucket, signer
	p.Config.Shares = job.NewSharesFrom(secret.Value, time.Now)
	p.Config.Files = p.Files(bucket, file.NewCursorsFrom(secret.Value))
	// Only this program needs an intake, because its bodies arrive as streams. Functions receive entire bodies.
	p.Config.Intake = &file.Intake{
		Reservations: dynamo.NewFiles(p.Records, p.Required("CUTROOM_FILES_TABLE")),
		NewID:        rand.Text, Now: time.Now,
	}
	if p.Flag("CUTROOM_CONTENT_REDIRECT") {
		p.Config.Downloads = signer
	}
	p.Config.Verifier = verifying.NewReader(verifying.Config{
		Library: p.Optional("CUTROOM_C2PA_LIBRARY"), Memory: readerMemory, Logger: p.Config.Logger,
		Signers: dynamo.NewSigners(p.Records, p.Required("CUTROOM_JOBS_TABLE")).Certificates,
	})
	p.Config.VerifyTime = verifyTime
	p.Config.VideoWait = awsapp.VideoWait
	p.Config.InferenceURL = p.Optional("CUTROOM_PUBLIC_INFERENCE_URL")
	p.RejectCold()
	p.Config.Minter = &credential.Minter{Store: p.Keys, Random: rand.Reader, Now: time.Now, Secret: secret.Value}
	p.Config.Keys = &credential.KeyService{Store: p.Keys, Random: rand.Reader, Now: time.Now}
	p.ManageBudgets()
	p.Config.Fetch = webhookhttp.NewFetcher(webhookhttp.Config{Targets: p.Config.WebhookTargets})
	p.Config.AuditLog = dynamo.NewAudit(p.Records, p.Required("CUTROOM_USAGE_TABLE"))
	p.Config.WebhookSecrets = webhook.NewSecretsFrom(secret.Value)
	p.Config.WebhookLog = dynamo.NewWebhooks(p.Records, p.Required("CUTROOM_JOBS_TABLE"))
	p.Config.Sessions = dynamo.NewSessions(p.Records, p.Required("CUTROOM_SESSIONS_TABLE"))
	return p.Surface(api.Jobs, api.Content, api.Credentials, api.Events, api.Generate, api.Files, api.FileContent, api.Tokens, api.Keys,
		api.Budgets, api.Audit, api.Models, api.Realtime, api.Webhooks, api.OpenAPI, api.Root, api.Health,
		api.OpenAIImages, api.OpenAIVideos, api.OpenAIContent)
}
