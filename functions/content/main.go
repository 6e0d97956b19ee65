// Function content sends the results of jobs, how they come to be, and the bytes
// of stored files: GET /v1/jobs/{id}/content, GET /v1/jobs/{id}/events and GET
// /v1/uploads/{file_id}.
package main

import (
	"net/http"
	"os"

	"cutroom/shared/app/awsapp"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/api"
)

func main() { lambdahttp.Main(content) }

func content() (http.Handler, lambdahttp.Mode, error) {
	mode, err := lambdahttp.ResponseMode(os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	f, err := awsapp.NewFunction()
	if err != nil {
		return nil, 0, err
	}
	f.ReadJobs()
	f.ReadFiles()
	bucket := f.Bucket()
	f.Config.Blobs = bucket
	if f.Flag("CUTROOM_CONTENT_REDIRECT") {
		f.Config.Downloads = f.Signer(bucket)
	}
	f.Config.EventsOnce = mode == lambdahttp.Buffered
	handler, err := f.Handler(api.Content, api.Events, api.FileContent)
	return handler, mode, err
}
