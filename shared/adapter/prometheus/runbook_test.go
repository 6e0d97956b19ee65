package prometheus_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/prometheus"
	"cutroom/shared/domain/job"
	"cutroom/shared/platform/httpserver"
	"cutroom/shared/service/gateway/upstream"
	"cutroom/shared/service/worker"
)

func watched() *prometheus.Metrics {
	m := prometheus.New()
	m.Worker().Watch(func() []worker.Load { return nil })
	m.Watch(func() []upstream.Health { return nil }, func() []upstream.QueueState { return nil })
	m.WatchState(func(context.Context) (prometheus.State, error) {
		return prometheus.State{
			Jobs:        []prometheus.OpenJobs{{Lane: job.VideoLane, Status: job.Pending, Count: 3, Age: 90 * time.Second}},
			StoredBytes: 4096, Sessions: 2, Waiting: 3,
		}, nil
	})
	return m
}

func TestLogsPageHasEveryMetric(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "logs.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var described []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, name := range regexp.MustCompile("`(cutroom_[a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
				described = append(described, name[1])
			}
		}
	}
	var made []string
	for _, name := range watched().Names() {
		if strings.HasPrefix(name, "cutroom_") {
			made = append(made, name)
			if !slices.Contains(described, name) {
				t.Errorf("docs/logs.md does not describe %s", name)
			}
		}
	}
	for _, name := range described {
		if !slices.Contains(made, name) {
			t.Errorf("docs/logs.md has %s, which is not a metric", name)
		}
	}
}

func TestRequestsAndStateAreShown(t *testing.T) {
	m := watched()
	media := m.Surface("media")
	for range 2 {
		media.Answered(
			httpserver.Answer{Method: "GET", Route: "/v1/jobs/{id}", Status: 200, Duration: 20 * time.Millisecond, Received: 5,
				Sent: 70})
	}
	media.Answered(httpserver.Answer{Method: "_OTHER", Status: 404})
	text := metricsText(m)
	for _, line := range []string{
		`cutroom_http_requests_total{method="GET",route="/v1/jobs/{id}",status="200",surface="media"} 2`,
		`cutroom_http_requests_total{method="_OTHER",route="",status="404",surface="media"} 1`,
		`cutroom_http_request_duration_seconds_bucket{route="/v1/jobs/{id}",surface="media",le="0.025"} 2`,
		`cutroom_http_received_bytes_total{route="/v1/jobs/{id}",surface="media"} 10`,
		`cutroom_http_sent_bytes_total{route="/v1/jobs/{id}",surface="media"} 140`,
		`cutroom_jobs_open{lane="video",status="pending"} 3`,
		`cutroom_jobs_open{lane="image",status="processing"} 0`,
		`cutroom_jobs_oldest_age_seconds{lane="video",status="pending"} 90`,
		`cutroom_files_stored_bytes 4096`,
		`cutroom_sessions_open 2`,
		`cutroom_sessions_waiting 3`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
}
