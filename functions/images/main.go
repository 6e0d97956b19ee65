// Function images edits images while the client waits, and serves the deprecated synchronous video
// routes: POST /v1/generate/{id}, /v1/images/edits and /v1/images/generations.
package main

import (
	"net/http"
	"os"
	"time"

	"cutroom/shared/adapter/secrets"
	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/adapter/webhookhttp"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/domain/cursor"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/api"
)

func main() { lambdahttp.Main(images) }

func images() (http.Handler, lambdahttp.Mode, error) {
	mode, err := lambdahttp.ResponseMode(os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	f, err := awsapp.NewFunction()
	if err != nil {
		return nil, 0, err
	}
	bucket, queues := f.Bucket(), f.Queues()
	f.AcceptJobs(stepfn.NewMachine(f.AWS, f.Required("CUTROOM_STATE_MACHINE"), queues),
		sqsqueue.NewLengths(f.AWS, queues), cursor.Codec{})
	f.Config.Blobs = bucket
	f.Config.Files = f.Files(bucket, file.Cursors{})
	f.Config.VideoWait = awsapp.VideoWait
	f.Config.Shares = job.NewSharesFrom(secrets.NewSecret(f.AWS, f.Required("CUTROOM_SECRET_ARN")).Value, time.Now)
	f.Config.Fetch = webhookhttp.NewFetcher(webhookhttp.Config{})
	f.RejectCold()
	handler, err := f.Handler(api.Generate, api.OpenAIImages)
	return handler, mode, err
}
