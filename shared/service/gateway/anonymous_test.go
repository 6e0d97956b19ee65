package gateway_test

import (
	"strings"
	"testing"

	"cutroom/shared/testkit/alloctest"
)

// A call without a credential uses at most 20 bytes of memory per received byte, plus 128 KiB. The
// gateway responds without reading the body, and never with a server error.
func TestAnonymousCallsUseLittleMemory(t *testing.T) {
	w := newWorld(t, setup{batches: true})
	address := strings.TrimPrefix(w.url, "http://")
	lines := []string{
		"GET /", "GET /healthz", "GET /health", "GET /metrics", "GET /nowhere", "OPTIONS /v1/chat/completions", "TRACE /v1/models",
		"GET /" + strings.Repeat("%2e%2e/", 2<<10), "GET /v1/" + strings.Repeat("/", 14<<10),
		"POST /v1/chat/completions/" + strings.Repeat("a/", 7<<10), "DELETE /v1/chat/completions",
	}
	protected := []string{
		"POST /v1/chat/completions", "POST /v1/completions", "POST /v1/responses", "POST /v1/messages", "POST /v1/messages/count_tokens",
		"POST /v1/embeddings", "POST /v1/rerank", "POST /v1/score", "POST /v1/audio/transcriptions", "POST /v1/audio/speech", "GET /v1/models", "GET /v1/models/a", "GET /v1/usage",
		"GET /v1/models/" + strings.Repeat("a", 14<<10), "POST /v1/files", "GET /v1/files", "GET /v1/files/a", "DELETE /v1/files/a",
		"GET /v1/files/a/content", "POST /v1/batches", "GET /v1/batches", "GET /v1/batches/a", "POST /v1/batches/a/cancel",
	}
	const bearer = "Authorization: Bearer "
	calls := alloctest.CheckAnonymous(t, address, bearer, false, lines...) +
		alloctest.CheckAnonymous(t, address, bearer, true, protected...) +
		alloctest.CheckAnonymous(t, address, "x-api-key: ", true, "POST /v1/messages")
	t.Logf("made %d calls, want one of each of %d routes", calls, len(lines)+len(protected))
	alloctest.CheckUnread(t, address, 401, protected...)
}
