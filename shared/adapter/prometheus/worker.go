package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"cutroom/shared/service/worker"
)

// The upper limits of the buckets, in seconds. A fetch takes fractions of a second; an engine may take as long as the
// entire job.
var stageBuckets = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600}

// Worker's label values are lanes, catalog models and stages. An engine adds only a few stages.
type Worker struct {
	registry *prometheus.Registry
	runs     *prometheus.CounterVec
	waited   *prometheus.HistogramVec
	stages   *prometheus.HistogramVec
}

var _ worker.Observer = (*Worker)(nil)

// Worker must be called only once.
func (m *Metrics) Worker() *Worker {
	return &Worker{
		registry: m.registry,
		runs:     counter(m.registry, "cutroom_worker_runs_total", "Runs of jobs, by outcome.", "lane", "model", "outcome", "code"),
		waited: histogram(m.registry, "cutroom_worker_queue_wait_seconds", stageBuckets,
			"Time from a job's creation to the start of its first run.", "lane"),
		stages: histogram(m.registry, "cutroom_worker_stage_duration_seconds", stageBuckets,
			"Duration of each stage of a run: fetch, probe, enhance, engine, store, and engine.* for stages that the "+
				"engine reports.", "model", "stage"),
	}
}

func (w *Worker) Ran(r worker.Run) {
	w.runs.WithLabelValues(string(r.Lane), r.Model, string(r.Outcome), string(r.Code)).Inc()
	if r.Number == 1 && r.Outcome != worker.HandedBack {
		w.waited.WithLabelValues(string(r.Lane)).Observe(r.Waited.Seconds())
	}
	for stage, took := range r.Stages {
		w.stages.WithLabelValues(r.Model, stage).Observe(took.Seconds())
	}
}

func (w *Worker) Watch(loads func() []worker.Load) { w.registry.MustRegister(&slots{loads}) }

type slots struct {
	loads func() []worker.Load
}

var (
	slotLabels = []string{"lane"}
	slotCount  = prometheus.NewDesc("cutroom_worker_slots", "Maximum number of concurrent jobs.", slotLabels, nil)
	slotBusy   = prometheus.NewDesc("cutroom_worker_busy_slots", "Jobs in progress in an engine.", slotLabels, nil)
	slotTime   = prometheus.NewDesc("cutroom_worker_busy_seconds_total",
		"Total time of jobs in an engine over all slots. Its rate divided by the slots is the busy fraction.",
		slotLabels, nil)
	slotAhead = prometheus.NewDesc("cutroom_worker_prefetched_jobs", "Jobs fetched in advance that wait for a free slot.",
		slotLabels, nil)
)

func (s *slots) Describe(out chan<- *prometheus.Desc) {
	describe(out, slotCount, slotBusy, slotTime, slotAhead)
}

func (s *slots) Collect(out chan<- prometheus.Metric) {
	for _, l := range s.loads() {
		lane := string(l.Lane)
		gauge(out, slotCount, float64(l.Slots), lane)
		gauge(out, slotBusy, float64(l.Busy), lane)
		out <- prometheus.MustNewConstMetric(slotTime, prometheus.CounterValue, l.BusyTime.Seconds(), lane)
		gauge(out, slotAhead, float64(l.Prefetched), lane)
	}
}
