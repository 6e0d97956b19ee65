package api_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"cutroom/shared/domain/credential"
	"cutroom/shared/domain/job"
	"cutroom/shared/testkit/await"
)

func (w *world) photograph(id, result, input string) {
	w.t.Helper()
	w.store(id, job.Thumbnails{Result: []byte(result), Input: []byte(input)})
}

func (w *world) store(id string, pictures job.Thumbnails) {
	w.t.Helper()
	name := w.record(id).ThumbnailsBlob()
	if _, err := w.blobs.Put(w.t.Context(), name, bytes.NewReader(pictures.Encode())); err != nil {
		w.t.Fatal(err)
	}
}

// Every credential that may read the job can read its pictures until the result expires.
func TestThumbnailShowsResultAndInput(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.accepted(w.post("gen-2.5", studio, part{"data", "beach.mp4", clip(t)}, text("prompt", "watercolor")))
	path := "/v1/jobs/" + id + "/thumbnail"
	token := w.mint(studio, credential.Scope{})
	if a := w.get(path, studio); a.status != 409 || a.header.Get("Retry-After") != "2" {
		t.Errorf("thumbnail of a pending job: %d %s", a.status, a.body)
	}
	w.start(id)
	w.complete(id, "the result", "video/mp4")
	w.store(id, job.Thumbnails{
		Result: []byte("small result"), Input: []byte("small input"), Poster: []byte("large result"),
	})
	for _, c := range []struct{ path, key, body, name string }{
		{path, studio, "small result", "beach-watercolor-result.jpg"},
		{path + "?of=", studio, "small result", "beach-watercolor-result.jpg"},
		{path + "?of=result", token, "small result", "beach-watercolor-result.jpg"},
		{path + "?of=input", studio, "small input", "beach-watercolor-input.jpg"},
		{path + "?size=thumbnail", studio, "small result", "beach-watercolor-result.jpg"},
		{path + "?size=poster", studio, "large result", "beach-watercolor-poster.jpg"},
		{path + "?of=result&size=poster", token, "large result", "beach-watercolor-poster.jpg"},
		{path + "?of=input&size=poster", studio, "small input", "beach-watercolor-input.jpg"},
		{path + "?size=poster&api_key=" + token, "", "large result", "beach-watercolor-poster.jpg"},
		{path + "?of=input&api_key=" + token, "", "small input", "beach-watercolor-input.jpg"},
	} {
		a := w.get(c.path, c.key)
		header := a.header
		if a.status != 200 || a.body != c.body || header.Get("Content-Type") != "image/jpeg" ||
			header.Get("Content-Disposition") != `inline; filename="`+c.name+`"` ||
			header.Get("Cache-Control") != "private, max-age=3600" || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %q %v", c.path, a.status, a.body, header)
		}
		tag := header.Get("ETag")
		for _, known := range []string{tag, `"other", ` + tag, "W/" + tag, "*"} {
			if same := w.get(c.path, c.key, "If-None-Match: "+known); same.status != 304 || same.header.Get("ETag") != tag {
				t.Errorf("%s, which the client has as %s: %d", c.path, known, same.status)
			}
		}
		if other := w.get(c.path, c.key, `If-None-Match: "other"`); other.status != 200 {
			t.Errorf("%s, of which the client has another: %d", c.path, other.status)
		}
		head := w.request("HEAD", c.path, c.key, nil)
		if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != header.Get("Content-Length") {
			t.Errorf("HEAD %s: %d %v", c.path, head.status, head.header)
		}
	}
	tags := map[string]bool{}
	for _, query := range []string{"", "?of=input", "?size=poster"} {
		tags[w.get(path+query, studio).header.Get("ETag")] = true
	}
	if len(tags) != 3 {
		t.Errorf("three pictures have the entity tags %v", tags)
	}
	if a := w.get(path+"?size=huge", studio); a.status != 422 || !strings.Contains(a.body, `"loc":["query","size"]`) {
		t.Errorf("thumbnail of another size: %d %s", a.status, a.body)
	}
	if a := w.get(path+"?of=mask", studio); a.status != 422 || !strings.Contains(a.body, `"loc":["query","of"]`) {
		t.Errorf("thumbnail of something else: %d %s", a.status, a.body)
	}
	// Images have no poster, so the thumbnail is sent instead.
	w.photograph(id, "small result", "")
	if a := w.get(path+"?size=poster", studio); a.status != 200 || a.body != "small result" ||
		a.header.Get("ETag") != w.get(path, studio).header.Get("ETag") {
		t.Errorf("without a poster: %d %s %s", a.status, a.body, a.header.Get("ETag"))
	}
	w.pass(25 * time.Hour)
	if a := w.get(path, studio); a.status != 404 {
		t.Errorf("thumbnail of an expired result: %d %s", a.status, a.body)
	}
}

// A request waits for the thumbnail, or until the job turns out to have no pictures.
func TestLateThumbnailsAreAwaited(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.completed("the result", "video/mp4")
	path := "/v1/jobs/" + id + "/thumbnail"
	answers := make(chan answer)
	go func() { answers <- w.get(path, studio) }()
	time.Sleep(20 * time.Millisecond) // usually lets the request arrive first, but either order works
	w.photograph(id, "small result", "")
	if a := await.Receive(t, "answers", answers); a.status != 200 || a.body != "small result" {
		t.Errorf("got %d %s", a.status, a.body)
	}
	const none = `{"detail":"There is no such thumbnail."}`
	if a := w.get(path+"?of=input", studio); a.status != 404 || a.body != none {
		t.Errorf("thumbnail of a job without an input: %d %s", a.status, a.body)
	}
	without := w.completed("the result", "video/mp4")
	w.pass(time.Minute)
	if a := w.get("/v1/jobs/"+without+"/thumbnail", studio); a.status != 404 || a.body != none {
		t.Errorf("thumbnail of a job without pictures: %d %s", a.status, a.body)
	}
	failed := w.submit(studio)
	w.start(failed)
	w.fail(failed, job.Failure{Code: job.EngineError, Message: "x"})
	if a := w.get("/v1/jobs/"+failed+"/thumbnail", studio); a.status != 409 || a.header.Get("Retry-After") != "" {
		t.Errorf("thumbnail of a failed job: %d %s", a.status, a.body)
	}
}
