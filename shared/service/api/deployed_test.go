package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"cutroom/shared/domain/job"
)

func TestImageWithoutWorkerIsRejected(t *testing.T) {
	var asked []job.Lane
	w := newWorld(t, setup{warm: func(_ context.Context, lane job.Lane) (bool, error) {
		asked = append(asked, lane)
		return false, nil
	}})
	a := w.request("POST", "/v1/generate/gen-image-latest", studio, nil)
	if a.status != 503 || a.header.Get("Retry-After") != "45" ||
		a.detail() != "No worker is running; one is starting. Try again, or submit the image as a job to "+
			"/v1/jobs/gen-image-2." {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if fmt.Sprint(asked) != "[image]" {
		t.Errorf("asked for workers of %v", asked)
	}
	if a := w.request("POST", "/v1/generate/gen-image-2", "", nil); a.status != 401 {
		t.Errorf("without a key: %d", a.status)
	}
	// These routes accept jobs and videos. Here, the forms are invalid.
	for _, path := range []string{"/v1/jobs/gen-image-2", "/v1/generate/gen-clip"} {
		if a := w.request("POST", path, studio, nil); a.status != 422 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
}

type downloads struct{}

func (downloads) SignDownload(_ context.Context, blob, contentType, disposition string) (string, error) {
	return fmt.Sprintf("https://blobs.example.com/%s?type=%s&disposition=%s", blob, contentType, disposition), nil
}

func TestContentRedirectsToSignedURL(t *testing.T) {
	w := newWorld(t, setup{signs: downloads{}})
	id := w.submit(studio)
	path := "/v1/jobs/" + id + "/content"
	if a := w.request("GET", path, studio, nil); a.status != 409 {
		t.Errorf("before completion: %d", a.status)
	}
	w.start(id)
	w.complete(id, "0123456789", "video/mp4")
	if a := w.request("GET", path, rival, nil); a.status != 404 {
		t.Errorf("another account: %d", a.status)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(t.Context(), "GET", w.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-api-key", studio)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	want := fmt.Sprintf(`https://blobs.example.com/jobs/%[1]s/result-nonce?type=video/mp4&disposition=inline; `+
		`filename="x.mp4"`, id)
	if got := response.Header.Get("Location"); response.StatusCode != 307 || got != want ||
		response.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d to %s, want %s", response.StatusCode, got, want)
	}
}

// Lambda limits the size of streamed responses, so larger content is redirected, except for small ranges.
func TestLargeContentRedirects(t *testing.T) {
	w := newWorld(t, setup{signs: downloads{}, above: 9})
	id := w.completed("0123456789", "video/mp4")
	path := "/v1/jobs/" + id + "/content"
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for name, c := range map[string]struct {
		method, ranges string
		status         int
	}{
		"whole":                              {"GET", "", 307},
		"without its bytes":                  {"HEAD", "", 200},
		"a range without an end":             {"GET", "bytes=0-", 307},
		"the last bytes":                     {"GET", "bytes=-9", 307},
		"a range of the maximum length":      {"GET", "bytes=1-9", 206},
		"a range over the maximum length":    {"GET", "bytes=0-9", 307},
		"a range beyond the end":             {"GET", "bytes=0-99999999999999999999", 307},
		"a range that ends before it starts": {"GET", "bytes=5-1", 307},
		"several ranges":                     {"GET", "bytes=0-1,2-3", 307},
		"a range in other units":             {"GET", "lines=0-1", 307},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), c.method, w.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("x-api-key", studio)
			if c.ranges != "" {
				request.Header.Set("Range", c.ranges)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != c.status {
				t.Errorf("%d, want %d", response.StatusCode, c.status)
			}
		})
	}
}
