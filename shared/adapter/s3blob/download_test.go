package s3blob_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/s3blob"
)

func TestSignedDownloadNeedsNoKey(t *testing.T) {
	cloud := local.Cloud(t)
	store := s3blob.New(cloud.Config(), cloud.MakeBucket(t))
	if _, err := store.Put(t.Context(), "jobs/job_1/result", strings.NewReader("a film")); err != nil {
		t.Fatal(err)
	}
	url, err := s3blob.NewSigner(store, time.Now).SignDownload(t.Context(), "jobs/job_1/result", "video/mp4",
		`inline; filename="job_1.mp4"`)
	if err != nil {
		t.Fatal(err)
	}
	// The local AWS does not check signatures, but the URL shows what is signed.
	for _, want := range []string{"X-Amz-Expires=300", "X-Amz-SignedHeaders=host&", "X-Amz-Signature="} {
		if !strings.Contains(url, want) {
			t.Errorf("%s has no %s", url, want)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 || string(body) != "a film" {
		t.Errorf("got %d %q, %v", response.StatusCode, body, err)
	}
	if header := response.Header; header.Get("Content-Type") != "video/mp4" ||
		header.Get("Content-Disposition") != `inline; filename="job_1.mp4"` {
		t.Errorf("the header is %v", header)
	}
}
