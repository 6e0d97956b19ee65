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

// What a function sends of a blob itself, in bytes. Lambda streams at most 200 MB, at
// 2 MB/s beyond the first 6, and answers with at most 6 MB as a whole, in base64.
const (
	mostStreamed = 100 << 20
	mostBuffered = 4 << 20
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
	f.Config.Downloads = f.Signer(bucket)
	if !f.Flag("CUTROOM_CONTENT_REDIRECT") {
		f.Config.RedirectAbove = mostStreamed
		if mode == lambdahttp.Buffered {
			f.Config.RedirectAbove = mostBuffered
		}
	}
	f.Config.EventsOnce = mode == lambdahttp.Buffered
	handler, err := f.Handler(api.Content, api.Events, api.FileContent)
	return handler, mode, err
}
