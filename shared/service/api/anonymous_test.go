package api_test

import (
	"strings"
	"testing"
	"time"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/alloctest"
)

// An anonymous call needs at most 128 KiB of memory plus 20 bytes per byte received.
func TestAnonymousCallsNeedLittleMemory(t *testing.T) {
	w := newWorld(t, setup{origins: httpserver.Origins{}})
	lines := []string{
		"POST /v1/models/resolve", "GET /v1/engine", "GET /v1/looks", "POST /v1/understand", "GET /v1/shares/job_x",
		"PUT /v1/uploads/file_x", "GET /", "GET /healthz", "GET /health", "GET /openapi.json", "GET /openapi.yaml", "GET /docs",
		"GET /v1/realtime", "GET /.well-known/jwks.json", "GET /nowhere", "OPTIONS /v1/jobs", "TRACE /v1/jobs", "POST /v1/jobs/gen-2.5/" + strings.Repeat("a/", 20<<10),
		"GET /" + strings.Repeat("%2e%2e/", 8<<10), "GET /v1/" + strings.Repeat("/", 50<<10), "GET /v1/jobs/" + strings.Repeat("a", 50<<10),
	}
	var protected []string
	for _, c := range w.protectedRoutes() {
		method, _, _ := strings.Cut(c.Endpoint, " ")
		protected = append(protected, method+" "+c.Path)
	}
	const credential = "x-api-key: "
	calls := alloctest.CheckAnonymous(t, w.address, credential, false, lines...) +
		alloctest.CheckAnonymous(t, w.address, credential, true, protected...)
	t.Logf("%d calls of %d routes", calls, len(lines)+len(protected))
	alloctest.CheckUnread(t, w.address, 401, protected...)
}

// An upload's bytes are read only if its signed URL is valid and has not expired.
func TestSignedURLsAreVerifiedBeforeReading(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.accepted(w.post("gen-2.5", studio, part{"data", "a.mp4", clip(t)}, text("prompt", "a")))
	w.start(id)
	w.complete(id, "0123456789", "video/mp4")
	_, share := w.share(id, "")
	signed := w.announceBytes(studio, clip(t))
	other := w.announceBytes(studio, clip(t)+"a")
	upload := strings.TrimPrefix(signed.Upload.URL, w.url)
	path, query, _ := strings.Cut(upload, "?")
	const never = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
	invalid := []string{
		"PUT " + path, "PUT " + path + "?expires=99999999999&signature=" + strings.Repeat("A", 43),
		"PUT " + upload + "a", "PUT " + strings.Replace(upload, "expires=", "expires=1", 1),
		"PUT " + strings.Replace(upload, signed.ID, other.ID, 1), "PUT /v1/uploads/file_" + never + "?" + query,
		"PUT /v1/uploads/" + strings.Repeat("a", 800) + "?" + query,
		"GET " + share + "a", "GET /v1/shares/" + id, "GET " + strings.Replace(share, "expires=", "expires=1", 1),
		"GET /v1/shares/job_" + never + share[strings.Index(share, "?"):],
	}
	const credential = "x-api-key: "
	alloctest.CheckAnonymous(t, w.address, credential, true, invalid...)
	alloctest.CheckAnonymous(t, w.address, credential, false, "GET "+share, "HEAD "+share)
	alloctest.CheckUnread(t, w.address, 403, invalid...)
	if status, _ := alloctest.Send(t, w.address, []byte("PUT "+upload+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n")); status != 422 {
		t.Errorf("a body of another length: status %d", status)
	}
	w.later.Store(int64(48 * time.Hour))
	expired := []string{"PUT " + upload, "GET " + share}
	alloctest.CheckAnonymous(t, w.address, credential, true, expired...)
	alloctest.CheckUnread(t, w.address, 403, expired...)
}
