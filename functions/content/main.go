// Function content returns the results, thumbnails, previews and events of jobs, and the bytes and thumbnails of
// stored files: GET /v1/jobs/{id}/content, /v1/jobs/{id}/thumbnail, /v1/jobs/{id}/preview, /v1/jobs/{id}/events,
// /v1/shares/{job_id}, /v1/uploads/{file_id}, /v1/uploads/{file_id}/thumbnail and /v1/videos/{id}/content.
package main

import (
	"time"

	"cutroom/shared/adapter/secrets"
	"cutroom/shared/app/awsapp"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/api"
)

func main() { awsapp.Stream(content, api.Content, api.Events, api.FileContent, api.OpenAIContent) }

func content(f *awsapp.Parts) {
	f.ReadJobs()
	f.ReadFiles()
	bucket := f.Bucket()
	f.Config.Blobs = bucket
	secret := secrets.NewSecret(f.AWS, f.Required("CUTROOM_SECRET_ARN"))
	f.Config.Shares = job.NewSharesFrom(secret.Value, time.Now)
	f.Config.Downloads = f.Signer(bucket)
	if !f.Flag("CUTROOM_CONTENT_REDIRECT") {
		f.Config.RedirectAbove = f.Mode.MostSent()
	}
	f.Config.EventsOnce = f.Mode == lambdahttp.Buffered
}
