package prometheus_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/prometheus"
	"cutroom/shared/domain/usage"
	"cutroom/shared/service/gateway"
	"cutroom/shared/service/gateway/upstream"
	"cutroom/shared/testkit/alloctest"
)

func metricsText(m *prometheus.Metrics) string {
	return read(m, "operator", "Authorization", "Bearer operator").Body.String()
}

func read(m *prometheus.Metrics, key string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.RemoteAddr, r.Host = "127.0.0.1:5000", "127.0.0.1:8081"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	m.Handler(key, nil).ServeHTTP(w, r)
	return w
}

func TestMetricsShowCallsAndUpstreams(t *testing.T) {
	m := prometheus.New()
	m.Watch(func() []upstream.Health {
		return []upstream.Health{
			{Model: "chat", Upstream: "one", InFlight: 3, Limit: 8}, {Model: "chat", Upstream: "two", Open: true},
			{Model: "chat", Upstream: "fleet", Found: true, Replicas: 5},
		}
	}, func() []upstream.QueueState { return []upstream.QueueState{{Model: "chat", Waiting: 3, Places: 10}} })
	for range 2 {
		m.Completed(gateway.Completion{
			Route: "chat", Model: "chat", Stream: true, Status: 200, Duration: 3 * time.Second,
			FirstToken: 200 * time.Millisecond, Waited: 2 * time.Second,
			Counts: usage.Counts{Requests: 1, PromptTokens: 10, CachedTokens: 4, CompletionTokens: 7, ReasoningTokens: 2,
				Estimated: 1},
		})
	}
	m.Completed(gateway.Completion{Route: "completions", Status: 401, Code: "invalid_api_key", Duration: time.Millisecond})
	m.Attempted(gateway.Attempt{Model: "chat", Upstream: "two", Outcome: gateway.Failed})
	text := metricsText(m)
	for _, line := range []string{
		`cutroom_gateway_requests_total{code="",model="chat",route="chat",status="200"} 2`,
		`cutroom_gateway_requests_total{code="invalid_api_key",model="",route="completions",status="401"} 1`,
		`cutroom_gateway_request_duration_seconds_sum{model="chat",route="chat",stream="true"} 6`,
		`cutroom_gateway_request_duration_seconds_bucket{model="chat",route="chat",stream="true",le="5"} 2`,
		`cutroom_gateway_first_token_seconds_count{model="chat",route="chat"} 2`,
		`cutroom_gateway_first_token_seconds_bucket{model="chat",route="chat",le="0.25"} 2`,
		`cutroom_gateway_tokens_total{kind="prompt",model="chat"} 20`,
		`cutroom_gateway_tokens_total{kind="cached",model="chat"} 8`,
		`cutroom_gateway_tokens_total{kind="completion",model="chat"} 14`,
		`cutroom_gateway_tokens_total{kind="reasoning",model="chat"} 4`,
		`cutroom_gateway_estimated_total{model="chat"} 2`,
		`cutroom_gateway_upstream_attempts_total{model="chat",outcome="failed",upstream="two"} 1`,
		`cutroom_gateway_upstream_up{model="chat",upstream="one"} 1`,
		`cutroom_gateway_upstream_up{model="chat",upstream="two"} 0`,
		`cutroom_gateway_upstream_in_flight{model="chat",upstream="one"} 3`,
		`cutroom_gateway_upstream_in_flight_limit{model="chat",upstream="one"} 8`,
		`cutroom_gateway_upstream_replicas{model="chat",upstream="fleet"} 5`,
		`cutroom_gateway_queue_waiting{model="chat"} 3`,
		`cutroom_gateway_queue_places{model="chat"} 10`,
		`cutroom_gateway_queue_wait_seconds_sum{model="chat"} 4`,
		`go_goroutines `,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("missing: %s", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestOnlyOperatorCanReadMetrics(t *testing.T) {
	m := prometheus.New()
	for _, test := range []struct {
		name, key string
		header    []string
		status    int
	}{
		{"this machine", "operator", nil, 404},
		{"this machine without a configured key", "", nil, 404},
		{"the key", "operator", []string{"Authorization", "Bearer operator"}, 200},
		{"the key through a proxy", "operator", []string{"Authorization", "Bearer operator", "Via", "1.1 proxy"}, 200},
		{"a wrong key", "operator", []string{"Authorization", "Bearer other"}, 404},
		{"the key with another scheme", "operator", []string{"Authorization", "Basic operator"}, 404},
		{"an empty key without a configured key", "", []string{"Authorization", "Bearer "}, 404},
	} {
		got := read(m, test.key, test.header...)
		if got.Code != test.status {
			t.Errorf("%s: status %d, want %d", test.name, got.Code, test.status)
		}
		if got.Code == 404 && !strings.Contains(got.Body.String(), `{"error":{"message":"This path does not exist."`) {
			t.Errorf("%s: %s reveals its existence", test.name, got.Body)
		}
	}
}

// A request without the key takes at most 128 KiB of memory plus 20 bytes per received byte.
func TestAnonymousCallsNeedLittleMemory(t *testing.T) {
	address := alloctest.Serve(t, prometheus.New().Handler("operator", nil))
	alloctest.CheckAnonymous(t, address, "Authorization: Bearer ", true, "GET /metrics", "POST /metrics")
	alloctest.CheckUnread(t, address, 404, "GET /metrics", "POST /metrics")
}
