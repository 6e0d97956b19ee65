// Function images edits images while the client waits, and serves the deprecated synchronous video
// routes: POST /v1/generate/{id}.
package main

import (
	"net/http"
	"os"

	"cutroom/shared/adapter/sqsqueue"
	"cutroom/shared/adapter/stepfn"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/domain/cursor"
	"cutroom/shared/domain/file"
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
	f.RejectCold()
	handler, err := f.Handler(api.Generate)
	return handler, mode, err
}
