package api_test

import (
	"strings"
	"testing"

	"cutroom/shared/domain/credential"
)

// See docs/contract/jobs.md#previews.
func TestPreviewShowsLatestPicture(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.accepted(w.post("gen-2.5", studio, part{"data", "beach.mp4", clip(t)}, text("prompt", "watercolor")))
	path := "/v1/jobs/" + id + "/preview"
	token := w.mint(studio, credential.Scope{})
	refused := func(when, why string) {
		t.Helper()
		if a := w.get(path, studio); a.status != 404 || a.detail() != why {
			t.Errorf("%s: %d %s", when, a.status, a.body)
		}
	}
	refused("pending", "The job has no preview yet.")
	w.start(id)
	refused("processing without one", "The job has no preview yet.")
	var tags []string
	for _, content := range []string{"the first", "the second"} {
		name := w.record(id).PreviewBlob()
		if _, err := w.blobs.Put(t.Context(), name, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		for _, a := range []answer{w.get(path, studio), w.get(path, token), w.get(path+"?api_key="+token, "")} {
			if a.status != 200 || a.body != content || a.header.Get("Content-Type") != "image/jpeg" ||
				a.header.Get("Cache-Control") != "private, no-cache" || a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%d %s %v, want %s", a.status, a.body, a.header, content)
			}
			tags = append(tags, a.header.Get("ETag"))
		}
		if a := w.get(path, studio, "If-None-Match: "+tags[len(tags)-1]); a.status != 304 || a.body != "" {
			t.Errorf("again: %d %s", a.status, a.body)
		}
	}
	if tags[0] == "" || tags[0] == tags[len(tags)-1] {
		t.Errorf("the tags are %q", tags)
	}
	if a := w.get(path, rival); a.status != 404 || a.body != w.get("/v1/jobs/job_none/preview", rival).body {
		t.Errorf("another account: %d %s", a.status, a.body)
	}
	w.complete(id, "the result", "video/mp4")
	refused("completed", "The job has ended, so its previews were deleted.")
}
