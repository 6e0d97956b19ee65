package api_test

import (
	"strings"
	"testing"

	"cutroom/shared/platform/httpserver"
	"cutroom/shared/testkit/alloctest"
)

// A call without a credential takes at most 20 bytes of memory for each byte received,
// and 128 KiB. The service answers it, and never with a server error.
func TestMemoryOfAnonymousCalls(t *testing.T) {
	w := newWorld(t, setup{origins: httpserver.Origins{}})
	lines := []string{
		"POST /v1/models/resolve", "GET /v1/engine", "GET /v1/looks", "POST /v1/understand", "GET /v1/shares/job_x",
		"PUT /v1/uploads/file_x", "GET /", "GET /healthz", "GET /health", "GET /openapi.json", "GET /openapi.yaml", "GET /docs",
		"GET /v1/realtime", "GET /nowhere", "OPTIONS /v1/jobs", "TRACE /v1/jobs", "POST /v1/jobs/gen-2.5/" + strings.Repeat("a/", 20<<10),
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
