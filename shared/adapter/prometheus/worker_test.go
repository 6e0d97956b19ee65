package prometheus_test

import (
	"strings"
	"testing"
	"time"

	"cutroom/shared/adapter/prometheus"
	"cutroom/shared/domain/job"
	"cutroom/shared/service/worker"
)

func TestWorkerMetricsShowRuns(t *testing.T) {
	m := prometheus.New()
	w := m.Worker()
	w.Watch(func() []worker.Load {
		return []worker.Load{{Lane: job.VideoLane, Slots: 2, Busy: 1, Prefetched: 1, BusyTime: 90 * time.Second}}
	})
	stages := map[string]time.Duration{"fetch": 200 * time.Millisecond, "engine": 40 * time.Second,
		"engine.denoise": 38 * time.Second}
	w.Ran(
		worker.Run{Lane: job.VideoLane, Model: "gen-2.5", Number: 1, Outcome: worker.HandedBack, Waited: time.Second,
			Stages: stages})
	w.Ran(
		worker.Run{Lane: job.VideoLane, Model: "gen-2.5", Number: 1, Outcome: worker.Repeated, Code: job.EngineError,
			Waited: 3 * time.Second, Stages: stages})
	w.Ran(
		worker.Run{Lane: job.VideoLane, Model: "gen-2.5", Number: 2, Outcome: worker.Completed, Waited: time.Minute,
			Stages: stages})
	text := metricsText(m)
	for _, line := range []string{
		`cutroom_worker_runs_total{code="",lane="video",model="gen-2.5",outcome="handed_back"} 1`,
		`cutroom_worker_runs_total{code="engine_error",lane="video",model="gen-2.5",outcome="repeated"} 1`,
		`cutroom_worker_runs_total{code="",lane="video",model="gen-2.5",outcome="completed"} 1`,
		`cutroom_worker_queue_wait_seconds_count{lane="video"} 1`,
		`cutroom_worker_queue_wait_seconds_sum{lane="video"} 3`,
		`cutroom_worker_stage_duration_seconds_sum{model="gen-2.5",stage="engine"} 120`,
		`cutroom_worker_stage_duration_seconds_count{model="gen-2.5",stage="engine.denoise"} 3`,
		`cutroom_worker_stage_duration_seconds_bucket{model="gen-2.5",stage="fetch",le="0.25"} 3`,
		`cutroom_worker_slots{lane="video"} 2`,
		`cutroom_worker_busy_slots{lane="video"} 1`,
		`cutroom_worker_busy_seconds_total{lane="video"} 90`,
		`cutroom_worker_prefetched_jobs{lane="video"} 1`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
