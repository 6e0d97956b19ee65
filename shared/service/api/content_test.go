package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cutroom/shared/domain/blob"
	"cutroom/shared/domain/job"
)

func (w *world) complete(id, bytes, mime string) {
	w.t.Helper()
	name := job.ResultBlob(id, "nonce")
	size, err := w.blobs.Put(w.t.Context(), name, strings.NewReader(bytes))
	if err != nil {
		w.t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(bytes))
	result := job.Result{Blob: name, MIME: mime, Size: size, SHA256: hex.EncodeToString(hash[:])}
	if err := w.records.Complete(w.t.Context(), id, "nonce", result, w.now()); err != nil {
		w.t.Fatal(err)
	}
}

// completed returns the id of a new job with the given result.
func (w *world) completed(bytes, mime string) string {
	w.t.Helper()
	id := w.submit(studio)
	w.start(id)
	w.complete(id, bytes, mime)
	return id
}

func TestContentEndpointServesResult(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.completed("0123456789", "video/mp4")
	path := "/v1/jobs/" + id + "/content"
	hash := sha256.Sum256([]byte("0123456789"))
	tag := fmt.Sprintf(`"%x"`, hash)

	for _, c := range []struct {
		says   string
		header []string
		status int
		body   string
		fields map[string]string
	}{
		{"the entire content", nil, 200, "0123456789", map[string]string{
			"Content-Type": "video/mp4", "Content-Length": "10", "ETag": tag, "Accept-Ranges": "bytes",
			"Content-Disposition": `inline; filename="x.mp4"`, "X-Content-Type-Options": "nosniff",
			"Cache-Control": "private, no-cache",
		}},
		{"from the start", []string{"Range: bytes=0-3"}, 206, "0123", map[string]string{
			"Content-Range": "bytes 0-3/10", "Content-Length": "4", "Content-Type": "video/mp4", "ETag": tag,
		}},
		{"from the middle", []string{"Range: bytes=7-"}, 206, "789", map[string]string{"Content-Range": "bytes 7-9/10"}},
		{"the last bytes", []string{"Range: bytes=-2"}, 206, "89", map[string]string{"Content-Range": "bytes 8-9/10"}},
		{"a range past the end is shortened", []string{"Range: bytes=8-99"}, 206, "89", map[string]string{"Content-Range": "bytes 8-9/10",
			"Content-Length": "2"}},
		{"a range beyond the end", []string{"Range: bytes=10-"}, 416, `{"detail":"Requested Range Not Satisfiable"}`,
			map[string]string{
				"Content-Range": "bytes */10", "Content-Type": "application/json", "ETag": "", "Content-Disposition": "",
			}},
		{"the last zero bytes", []string{"Range: bytes=-0"}, 416, `{"detail":"Requested Range Not Satisfiable"}`,
			map[string]string{"Content-Range": "bytes */10"}},
		{"an unknown range unit: the entire content", []string{"Range: items=0-4"}, 200, "0123456789",
			map[string]string{"Content-Range": ""}},
		{"several ranges: the entire content", []string{"Range: bytes=0-1,4-5"}, 200, "0123456789",
			map[string]string{"Content-Range": ""}},
		{"a known version", []string{"If-None-Match: " + tag}, 304, "", map[string]string{"ETag": tag}},
		{"one of several known versions", []string{`If-None-Match: "x", W/` + tag}, 304, "", nil},
		{"another known version", []string{`If-None-Match: "x"`}, 200, "0123456789", nil},
		{"a range of a known version", []string{"Range: bytes=0-3", "If-Range: " + tag}, 206, "0123", nil},
		{"a range of another version", []string{"Range: bytes=0-3", `If-Range: "x"`}, 200, "0123456789", nil},
		{"an unexpected version", []string{`If-Match: "x"`}, 412, `{"detail":"Precondition Failed"}`,
			map[string]string{"ETag": ""}},
	} {
		a := w.get(path, studio, c.header...)
		if a.status != c.status || a.body != c.body {
			t.Errorf("%s: %d %q", c.says, a.status, a.body)
		}
		head := w.request(http.MethodHead, path, studio, nil, c.header...)
		if head.status != c.status || head.body != "" {
			t.Errorf("%s, HEAD: %d %q", c.says, head.status, head.body)
		}
		for field, want := range c.fields {
			if got := a.header.Get(field); got != want {
				t.Errorf("%s: %s is %q, want %q", c.says, field, got, want)
			}
			if got := head.header.Get(field); got != want {
				t.Errorf("%s, HEAD: %s is %q, want %q", c.says, field, got, want)
			}
		}
	}
}

func TestMissingContentIsReported(t *testing.T) {
	w := newWorld(t, setup{})
	image := w.accepted(w.post("gen-image-2", studio, upload("data", picture(t)), text("prompt", "x")))
	pending, failed, completed := w.submit(studio), w.submit(studio), w.submit(studio)
	check := func(says, id string, status int, detail, retryAfter string) {
		t.Helper()
		a := w.get("/v1/jobs/"+id+"/content", studio)
		if a.status != status || a.detail() != detail || a.header.Get("Retry-After") != retryAfter {
			t.Errorf("%s: %d %s %v", says, a.status, a.body, a.header)
		}
		if a.header.Get("ETag") != "" || a.header.Get("Content-Disposition") != "" {
			t.Errorf("%s: got the headers of a result: %v", says, a.header)
		}
	}
	check("unknown", "job_x", 404, "Job not found.", "")
	check("pending", pending, 409, "The job is pending; its result is not ready.", "2")
	w.start(pending)
	check("processing", pending, 409, "The job is processing; its result is not ready.", "2")
	w.start(failed)
	w.fail(failed, job.Failure{Code: job.InvalidInput, Message: "It is broken."})
	check("failed", failed, 409, "The job failed (invalid_input): It is broken.", "")

	w.start(image)
	w.complete(image, "png", "image/png")
	if a := w.get("/v1/jobs/"+image+"/content", studio); a.status != 200 || a.header.Get("Content-Type") != "image/png" ||
		a.header.Get("Content-Disposition") != `inline; filename="upload-x.png"` {
		t.Errorf("an image: %d %v", a.status, a.header)
	}

	w.start(completed)
	w.complete(completed, "bytes", "video/mp4")
	if err := w.blobs.Delete(t.Context(), job.ResultBlob(completed, "nonce")); err != nil {
		t.Fatal(err)
	}
	check("deleted bytes", completed, 404, "The job's result has expired.", "")

	w.later.Store(int64(24 * time.Hour))
	check("after 24 hours", image, 404, "The job's result has expired.", "")
	if a := w.get("/v1/jobs/"+image, studio); a.status != 200 {
		t.Errorf("the record after 24 hours: %d", a.status)
	}
	w.later.Store(int64(7 * 24 * time.Hour))
	if a := w.get("/v1/jobs/"+image, studio); a.status != 404 {
		t.Errorf("the record after 7 days: %d", a.status)
	}
}

type countedStore struct {
	blob.Store
	opened, length *atomic.Int64
}

func (s countedStore) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	s.opened.Add(1)
	s.length.Add(length)
	return s.Store.Open(ctx, name, offset, length)
}

func TestContentReadsNoMoreThanItSends(t *testing.T) {
	var opened, length atomic.Int64
	w := newWorld(t, setup{blobs: func(s blob.Store) blob.Store { return countedStore{s, &opened, &length} }})
	id := w.completed("0123456789", "video/mp4")
	path := "/v1/jobs/" + id + "/content"
	for _, c := range []struct {
		says, method string
		header       []string
		opens, reads int64
	}{
		{"HEAD", http.MethodHead, nil, 0, 0},
		{"not modified", http.MethodGet, []string{"If-None-Match: *"}, 0, 0},
		{"a range", http.MethodGet, []string{"Range: bytes=2-4"}, 1, 3},
		{"the entire content", http.MethodGet, nil, 1, 10},
	} {
		opened.Store(0)
		length.Store(0)
		w.request(c.method, path, studio, nil, c.header...)
		if opened.Load() != c.opens || length.Load() != c.reads {
			t.Errorf("%s: opened %d times for %d bytes", c.says, opened.Load(), length.Load())
		}
	}
}

func TestContentHasFileName(t *testing.T) {
	w := newWorld(t, setup{})
	named := func(want string, parts ...part) {
		t.Helper()
		id := w.accepted(w.post("gen-2.5", studio, parts...))
		w.start(id)
		w.complete(id, "bytes", "video/mp4")
		want = strings.ReplaceAll(want, "ID", id)
		if got := w.get("/v1/jobs/"+id+"/content", studio).header.Get("Content-Disposition"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	video := clip(t)
	named(`inline; filename="beach-a-watercolor.mp4"`, part{"data", "beach.mov", video}, text("prompt", "A watercolor!"))
	named(`inline; filename="t-mer.mp4"; filename*=UTF-8''%C3%A9t%C3%A9-mer.mp4`, part{"data", "été.mp4", video},
		text("prompt", "mer"))
	named(`inline; filename="ID.mp4"; filename*=UTF-8''%E5%A4%8F.mp4`, part{"data", "夏.mp4", video})
	named(`inline; filename="ID.mp4"`, part{"data", "", video})
	for name, want := range map[string]string{
		"My clip.mov":       `inline; filename="My-clip.mp4"; filename*=UTF-8''My%20clip.mp4`,
		"logo@2x 10:15.mov": `inline; filename="logo-2x-10-15.mp4"; filename*=UTF-8''logo%402x%2010%3A15.mp4`,
		"a=b&c+d'(e)%.mov":  `inline; filename="a-b-c-d-e.mp4"; filename*=UTF-8''a%3Db%26c%2Bd%27%28e%29%25.mp4`,
	} {
		stored := w.stored(w.send(studio, part{"file", name, video}))
		got := w.get("/v1/uploads/"+stored.ID, studio).header.Get("Content-Disposition")
		if _, read, err := mime.ParseMediaType(got); got != want || err != nil ||
			read["filename"] != strings.TrimSuffix(name, ".mov")+".mp4" {
			t.Errorf("%s is %s, read as %v, %v; want %s", name, got, read, err, want)
		}
	}
}
