package cloudwatch

import (
	"context"
	"time"

	"cutroom/shared/service/worker"
)

// Worker is a worker.Observer. Its only dimension is the lane. All other properties are only in the log line, for log
// queries.
type Worker struct{ metrics *Metrics }

var _ worker.Observer = (*Worker)(nil)

func (m *Metrics) Worker() *Worker { return &Worker{m} }

const laneDimension = "Lane"

func (w *Worker) Ran(r worker.Run) {
	failed := 0.0
	if r.Outcome == worker.Failed || r.Outcome == worker.Repeated {
		failed = 1
	}
	metrics := []metric{{"Runs", "Count", 1}, {"FailedRuns", "Count", failed}}
	if r.Number == 1 && r.Outcome != worker.HandedBack {
		metrics = append(metrics, metric{"QueueWait", "Milliseconds", milliseconds(r.Waited)})
	}
	stages := map[string]float64{}
	for stage, took := range r.Stages {
		stages[stage] = milliseconds(took)
	}
	for _, m := range stageMetrics {
		if took, ok := r.Stages[m.stage]; ok {
			metrics = append(metrics, metric{m.name, "Milliseconds", milliseconds(took)})
		}
	}
	w.metrics.write([]string{laneDimension}, metrics, map[string]any{
		laneDimension: r.Lane, "Model": r.Model, "Outcome": r.Outcome, "Code": r.Code, "Run": r.Number,
		"Took": milliseconds(r.Took), "Stages": stages,
	})
}

// stageMetrics covers only a few stages, because each metric costs money.
var stageMetrics = []struct{ stage, name string }{{"fetch", "Fetch"}, {"engine", "Engine"}, {"store", "Store"}}

// Watch periodically writes the fraction of time that the slots were busy, until the context ends.
func (w *Worker) Watch(ctx context.Context, every time.Duration, loads func() []worker.Load) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	before, since := loads(), w.metrics.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		after, now := loads(), w.metrics.now()
		for i, l := range after {
			share := float64(l.BusyTime-before[i].BusyTime) / (float64(now.Sub(since)) * float64(l.Slots))
			w.metrics.write([]string{laneDimension}, []metric{{"BusyShare", "Percent", 100 * min(max(share, 0), 1)}},
				map[string]any{
					laneDimension: l.Lane, "Slots": l.Slots, "Busy": l.Busy, "Prefetched": l.Prefetched,
				})
		}
		before, since = after, now
	}
}
