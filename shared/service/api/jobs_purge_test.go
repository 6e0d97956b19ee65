package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/await"
)

func (w *world) purge(id, key, query string) answer {
	w.t.Helper()
	return w.request("DELETE", "/v1/jobs/"+id+"?"+query, key, nil)
}

func TestEndedJobCanBeDeleted(t *testing.T) {
	w := newWorld(t, setup{})
	completed, failed := w.accepted(w.post("gen-2.5", studio, upload("data", clip(t)))), w.submit(studio)
	kept := w.submit(studio)
	w.start(completed)
	if a := w.purge(completed, studio, "purge=true"); a.status != 409 ||
		a.detail() != "The job is processing. Cancel it first." {
		t.Errorf("a job that is processing: %d %s", a.status, a.body)
	}
	w.complete(completed, "the result", "video/mp4")
	w.photograph(completed, "small", "small")
	for _, left := range []string{"preview-lost", "result-lost"} { // left by a crashed run
		if _, err := w.blobs.Put(t.Context(), job.Folder(completed)+"/"+left, strings.NewReader("lost")); err != nil {
			t.Fatal(err)
		}
	}
	_, shared := w.share(completed, "")
	w.start(failed)
	w.fail(failed, job.Failure{Code: job.EngineError, Message: "x"})
	if a := w.purge(completed, w.mint(studio, credential.Scope{}), "purge=true"); a.status != 403 {
		t.Errorf("a client token: %d %s", a.status, a.body)
	}
	if a := w.purge(completed, rival, "purge=true"); a.status != 404 {
		t.Errorf("another account: %d %s", a.status, a.body)
	}
	for query, want := range map[string]string{"purge=": "The job has already completed.", "purge=no": "The job has already completed."} {
		if a := w.purge(completed, studio, query); a.status != 409 || a.detail() != want {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	if a := w.purge(completed, studio, "purge=maybe"); a.status != 422 ||
		!strings.Contains(a.body, `"loc":["query","purge"]`) {
		t.Errorf("maybe: %d %s", a.status, a.body)
	}
	for id, query := range map[string]string{completed: "purge=true", failed: "purge=1"} {
		if a := w.purge(id, studio, query); a.status != 204 || a.body != "" {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
		for _, path := range []string{"", "/content", "/thumbnail", "/preview", "/events", "/deliveries"} {
			if a := w.get("/v1/jobs/"+id+path, studio); a.status != 404 {
				t.Errorf("%s after it: %d %s", path, a.status, a.body)
			}
		}
		if a := w.purge(id, studio, query); a.status != 404 {
			t.Errorf("again: %d %s", a.status, a.body)
		}
	}
	if a := w.get(shared, ""); a.status != 404 {
		t.Errorf("its link: %d %s", a.status, a.body)
	}
	if ids := w.jobIDs(studio, ""); len(ids) != 1 || ids[0] != kept {
		t.Errorf("the list has %v", ids)
	}
	w.nothingStays()
}

// An account whose storage is full cannot submit jobs.
func TestResultsCountAsStoredBytes(t *testing.T) {
	const free = int64(1) << 40
	w := newWorld(t, setup{stored: 1 << 20, free: func() (int64, error) { return free, nil }})
	stored := w.keep(studio, clip(t)).ID
	submit := func() answer { return w.post("gen-2.5", studio, text("data", stored)) }
	full := func() {
		t.Helper()
		for _, a := range []answer{submit(), w.send(studio, upload("file", "more"))} {
			if a.status != 429 || !strings.Contains(a.detail(), "storage is full") {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
	}
	first, second := w.accepted(submit()), w.accepted(submit())
	for _, id := range []string{first, second} {
		w.start(id)
		w.complete(id, strings.Repeat("x", 1<<20), "video/mp4")
		full()
		if err := w.shelf.ReleaseAll(t.Context()); err != nil { // as when a server starts
			t.Fatal(err)
		}
		full()
		w.accepted(w.post("gen-2.5", rival, upload("data", clip(t))))
		if id == first {
			if a := w.purge(first, studio, "purge=true"); a.status != 204 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
	}
	w.pass(24*time.Hour + time.Minute)
	w.accepted(w.post("gen-2.5", studio, upload("data", clip(t))))
}

// A slow download does not keep a deleted file's bytes on disk. Neither does a form that refers to the file and is
// still arriving.
func TestDeletedBytesLeaveTheDisk(t *testing.T) {
	w := newWorld(t, setup{})
	stored := w.keep(studio, strings.Repeat("x", 32<<20)).ID
	request, err := http.NewRequestWithContext(t.Context(), "GET", w.url+"/v1/uploads/"+stored, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", studio)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, form := io.Pipe()
	defer form.Close()
	named := w.keep(studio, clip(t)).ID
	go func() {
		request, _ := http.NewRequestWithContext(t.Context(), "POST", w.url+"/v1/jobs/gen-2.5", body)
		request.Header = http.Header{"X-Api-Key": {studio}, "Content-Type": {"multipart/form-data; boundary=b"}}
		if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
			response.Body.Close()
		}
	}()
	fmt.Fprintf(form, "--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n%s\r\n--b\r\n", named)
	for _, id := range []string{stored, named} {
		if a := w.request("DELETE", "/v1/files/"+id, studio, nil); a.status != 204 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	await.Until(t, "no blob is left", func() bool { return len(w.files()) == 0 })
	if n, err := io.Copy(io.Discard, response.Body); err == nil || n == 32<<20 {
		t.Errorf("the download of a deleted file gives %d bytes, %v", n, err)
	}
}
