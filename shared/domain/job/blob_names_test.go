package job_test

import (
	"context"
	"testing"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/job"
)

func TestJobWithoutInputsRecordsItsBlobNames(t *testing.T) {
	const id = "job_01K9ZZZZZZZZZZZZZZZZZZZZ7X"
	for spread, want := range map[bool]string{true: "jobs/7X/" + id + "/", false: "jobs/" + id + "/"} {
		store := &accepting{}
		service := job.NewService(job.Config{
			Store: store, SpreadBlobs: spread, Now: time.Now, Workers: map[job.Lane]int{job.VideoLane: 1},
		})
		_, err := service.Submit(t.Context(), job.Job{ID: id, Account: "acme", Lane: job.VideoLane}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		j := store.accepted
		j.Nonce = "n1"
		if got := j.ResultBlob(); got != want+"result-n1" {
			t.Errorf("the result is %q", got)
		}
		if got := j.PreviewBlob(); got != want+"preview-n1" {
			t.Errorf("the preview is %q", got)
		}
	}
}

type accepting struct {
	job.Store
	accepted job.Job
}

func (*accepting) Backlog(context.Context, job.Lane, string) (job.Backlog, error) {
	return job.Backlog{}, nil
}

func (a *accepting) Accept(_ context.Context, j job.Job, _ int, _ ...budget.Claim) error {
	a.accepted = j
	return nil
}

// A run's output is stored next to the inputs, and thumbnails next to the result, even if another
// version accepted or completed the job.
func TestBlobNamesFollowInputsAndResults(t *testing.T) {
	const id = "job_01K9ZZZZZZZZZZZZZZZZZZZZ7X"
	spread, plain := job.NewService(job.Config{SpreadBlobs: true}), job.NewService(job.Config{})
	for _, c := range []struct{ input, result, thumbnails string }{
		{spread.InputBlob(id, "data"), "jobs/7X/" + id + "/result-n1", "jobs/7X/" + id + "/thumbnails-n1"},
		{plain.InputBlob(id, "data"), "jobs/" + id + "/result-n1", "jobs/" + id + "/thumbnails-n1"},
		{"", "jobs/" + id + "/result-n1", "jobs/" + id + "/thumbnails-n1"},
		{"elsewhere/data", "jobs/" + id + "/result-n1", "jobs/" + id + "/thumbnails-n1"},
	} {
		j := job.Job{ID: id, Nonce: "n1", Request: job.Request{Inputs: map[string]job.Input{"data": {Blob: c.input}}}}
		if got := j.ResultBlob(); got != c.result {
			t.Errorf("the result of a job with the input %q is %q, want %q", c.input, got, c.result)
		}
		if got := j.ThumbnailsBlob(); got != c.thumbnails {
			t.Errorf("the thumbnails of a job with the input %q are %q, want %q", c.input, got, c.thumbnails)
		}
		j.Result = &job.Result{Blob: "jobs/other/result-n1"}
		if got, want := j.ThumbnailsBlob(), "jobs/other/thumbnails-n1"; got != want {
			t.Errorf("the thumbnails of a result elsewhere are %q, want %q", got, want)
		}
	}
}
