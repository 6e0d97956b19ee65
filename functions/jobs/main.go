// Function jobs accepts jobs, tells how they are, cancels and lists them: POST,
// GET and DELETE /v1/jobs/{id}, and GET /v1/jobs.
package main

import (
	"net/http"

	"cutroom/shared/api"
	"cutroom/shared/awsmedia"
	"cutroom/shared/file"
	"cutroom/shared/job"
	"cutroom/shared/lambdahttp"
	"cutroom/shared/secretsmanager"
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
	secret := secretsmanager.NewSecret(f.AWS, f.Required("CUTROOM_SECRET_ARN"))
	f.AcceptJobs(stepfn.NewMachine(f.AWS, f.Required("CUTROOM_STATE_MACHINE"), queues), sqs.NewLengths(f.AWS, queues), job.NewCursorsFrom(secret.Value))
	f.Config.Blobs = bucket
	f.Config.Files = f.Files(bucket, file.Cursors{})
	handler, err := f.Handler(api.Jobs)
	return handler, lambdahttp.Buffered, err
}
