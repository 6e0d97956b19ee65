package job_test

import (
	"testing"

	"cutroom/shared/domain/job"
)

// Names of blobs begin with random digits where the store divides names by their beginnings.
// What a run stores is beside the inputs, and thumbnails are beside the result, also of a job
// that another version accepted or completed.
func TestNamesOfBlobs(t *testing.T) {
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
