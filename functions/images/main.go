// Function images edits images while the caller waits, and serves the deprecated
// synchronous video routes: POST /v1/generate/{id}.
package main

import (
	"net/http"
	"os"
	"time"

	"cutroom/shared/api"
	"cutroom/shared/awsmedia"
	"cutroom/shared/cursor"
	"cutroom/shared/dynamo"
	"cutroom/shared/file"
	"cutroom/shared/lambda"
	"cutroom/shared/lambdahttp"
	"cutroom/shared/sqs"
	"cutroom/shared/stepfn"
)

func main() { lambdahttp.Main(images) }

func images() (http.Handler, lambdahttp.Form, error) {
	form, err := lambdahttp.StreamingUnless(os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	f, err := awsmedia.NewFunction()
	if err != nil {
		return nil, 0, err
	}
	bucket, queues := f.Bucket(), f.Queues()
	f.AcceptJobs(stepfn.NewMachine(f.AWS, f.Required("CUTROOM_STATE_MACHINE"), queues), sqs.NewLengths(f.AWS, queues), cursor.Cursors{})
	f.Config.Blobs = bucket
	f.Config.Files = f.Files(bucket, file.Cursors{})
	f.Config.VideoWait = awsmedia.VideoWait
	var waker awsmedia.Waker
	if name := f.Optional("CUTROOM_WAKE_FUNCTION"); name != "" {
		waker = lambda.NewFunction(f.AWS, name, time.Now)
	}
	workers := dynamo.NewWorkers(f.Records, f.Required("CUTROOM_JOBS_TABLE"), time.Now)
	f.Config.Warm = awsmedia.Wake(workers, waker, time.Now, f.Config.Logger)
	handler, err := f.Handler(api.Generate)
	return handler, form, err
}
