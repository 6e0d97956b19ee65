// Function jobs accepts jobs and tells how they are: POST and GET /v1/jobs/{id}.
package main

import (
	"net/http"

	"cutroom/shared/api"
	"cutroom/shared/awsmedia"
	"cutroom/shared/file"
	"cutroom/shared/lambdahttp"
	"cutroom/shared/sqs"
	"cutroom/shared/stepfn"
)

func main() { lambdahttp.Main(jobs) }

func jobs() (http.Handler, lambdahttp.Form, error) {
	f, err := awsmedia.NewFunction()
	if err != nil {
		return nil, 0, err
	}
	bucket, queues := f.Bucket(), f.Queues()
	f.AcceptJobs(stepfn.NewMachine(f.AWS, f.Required("CUTROOM_STATE_MACHINE"), queues), sqs.NewLengths(f.AWS, queues))
	f.Config.Blobs = bucket
	f.Config.Files = f.Files(bucket, file.Cursors{})
	handler, err := f.Handler(api.Jobs)
	return handler, lambdahttp.Buffered, err
}
