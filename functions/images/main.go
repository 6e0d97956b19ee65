// Function images edits images while the client waits, and serves the deprecated synchronous video
// routes: POST /v1/generate/{id}, /v1/images/edits and /v1/images/generations.
package main

import (
	"time"

	"cutroom/shared/adapter/secrets"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/domain/cursor"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/api"
)

func main() { awsapp.Stream(images, api.Generate, api.OpenAIImages) }

func images(f *awsapp.Parts) {
	bucket, queues := f.Bucket(), f.Queues()
	f.AcceptJobs(stepfn.NewMachine(f.AWS, f.Required("CUTROOM_STATE_MACHINE"), queues),
		sqsqueue.NewLengths(f.AWS, queues), cursor.Codec{})
	f.Config.Blobs = bucket
	f.Config.Files = f.Files(bucket, file.Cursors{})
	f.Config.VideoWait = awsapp.VideoWait
	f.Config.Shares = job.NewSharesFrom(secrets.NewSecret(f.AWS, f.Required("CUTROOM_SECRET_ARN")).Value, time.Now)
	f.Config.Fetch = webhookhttp.NewFetcher(webhookhttp.Config{})
	f.RejectCold()
}
