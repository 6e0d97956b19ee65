package main

import (
	"crypto/rand"
	"time"

	"cutroom/shared/api"
	"cutroom/shared/awsmedia"
	"cutroom/shared/credential"
	"cutroom/shared/dynamo"
	"cutroom/shared/file"
	"cutroom/shared/httpserver"
	"cutroom/shared/job"
	"cutroom/shared/lambda"
	"cutroom/shared/s3"
	"cutroom/shared/secretsmanager"
	"cutroom/shared/sqs"
	"cutroom/shared/stepfn"
	"cutroom/shared/webhook"
)

// newSurface makes every route of the media service, but the one that takes the
// bytes of signed uploads: the bucket takes them itself. Calls that wait for a
// job do so through a stop, as the workers are elsewhere.
//
// Errors: the first setting that is missing or wrong.
func newSurface(p *awsmedia.Parts) (httpserver.Config, error) {
	bucket, queues := p.Bucket(), p.Queues()
	secret := secretsmanager.NewSecret(p.AWS, p.Required("CUTROOM_SECRET_ARN"))
	p.AcceptJobs(stepfn.NewMachine(p.AWS, p.Required("CUTROOM_STATE_MACHINE"), queues), sqs.NewLengths(p.AWS, queues), job.NewCursorsFrom(secret.Value))
	signer := s3.NewSigner(bucket, time.Now)
	p.Config.Blobs, p.Config.Signer = bucket, signer
	p.Config.Files = p.Files(bucket, file.NewCursorsFrom(secret.Value))
	if p.Flag("CUTROOM_CONTENT_REDIRECT") {
		p.Config.Downloads = signer
	}
	p.Config.VideoWait = awsmedia.VideoWait
	var waker awsmedia.Waker
	if name := p.Optional("CUTROOM_WAKE_FUNCTION"); name != "" {
		waker = lambda.NewFunction(p.AWS, name, time.Now)
	}
	p.Config.Warm = awsmedia.Wake(dynamo.NewWorkers(p.Records, p.Required("CUTROOM_JOBS_TABLE"), time.Now), waker, time.Now, p.Config.Logger)
	p.Config.Minter = &credential.Minter{Store: p.Keys, Random: rand.Reader, Now: time.Now}
	p.Config.Keys = &credential.KeyService{Store: p.Keys, Random: rand.Reader, Now: time.Now}
	p.Config.WebhookTargets, p.Config.WebhookSecrets = p.WebhookTargets(), webhook.NewSecretsFrom(secret.Value)
	p.Config.WebhookLog = dynamo.NewWebhooks(p.Records, p.Required("CUTROOM_JOBS_TABLE"))
	p.Config.Sessions = dynamo.NewSessions(p.Records, p.Required("CUTROOM_SESSIONS_TABLE"))
	p.Config.QuotaReads = dynamo.NewWindows(p.Records, p.Required("CUTROOM_USAGE_TABLE"), time.Now, rand.Text)
	return p.Surface(api.Jobs, api.Content, api.Events, api.Generate, api.Files, api.FileContent, api.Tokens, api.Keys, api.Models, api.Realtime, api.Webhooks, api.OpenAPI, api.Health)
}
