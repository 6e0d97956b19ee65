package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"cutroom/shared/service/worker"
)

// stageBuckets are the upper limits of the buckets for a run's stages, in seconds. A fetch takes parts
// of a second, an engine up to the whole time of a job.
var stageBuckets = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600}

// Worker is a worker.Observer. Its labels are lanes, catalog models, and stages; an engine adds at
// most a few stages.
type Worker struct {
	registry *prometheus.Registry
	runs     *prometheus.CounterVec
	waited   *prometheus.HistogramVec
	stages   *prometheus.HistogramVec
}

var _ worker.Observer = (*Worker)(nil)

// Worker adds the metrics of a worker. Call it once.
func (m *Metrics) Worker() *Worker {
	w := &Worker{
		registry: m.registry,
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cutroom_worker_runs_total", Help: "Runs of jobs, by how they ended.",
		}, []string{"lane", "model", "outcome", "code"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cutroom_worker_queue_wait_seconds", Help: "From a job's creation to the start of its first run.",
			Buckets: stageBuckets,
		}, []string{"lane"}),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cutroom_worker_stage_duration_seconds",
			Help: "Times of the stages of runs: fetch, probe, enhance, engine, store, and as engine.* those that the engine " +
				"tells.", Buckets: stageBuckets,
		}, []string{"model", "stage"}),
	}
	m.registry.MustRegister(w.runs, w.waited, w.stages)
	return w
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

// Watch adds the load of the slots, read at every scrape.
func (w *Worker) Watch(loads func() []worker.Load) { w.registry.MustRegister(&slots{loads}) }

type slots struct {
	loads func() []worker.Load
}

var (
	slotLabels = []string{"lane"}
	slotCount  = prometheus.NewDesc("cutroom_worker_slots", "How many jobs may run at once.", slotLabels, nil)
	slotBusy   = prometheus.NewDesc("cutroom_worker_busy_slots", "How many jobs are with an engine.", slotLabels, nil)
	slotTime   = prometheus.NewDesc("cutroom_worker_busy_seconds_total",
		"Time that jobs were with an engine, added up over the slots. Its rate over the slots is the busy share.",
		slotLabels, nil)
	slotAhead = prometheus.NewDesc("cutroom_worker_prefetched_jobs", "How many jobs are in hand for a slot to be free.",
		slotLabels, nil)
)

func (s *slots) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{slotCount, slotBusy, slotTime, slotAhead} {
		out <- desc
	}
}

func (s *slots) Collect(out chan<- prometheus.Metric) {
	for _, l := range s.loads() {
		lane := string(l.Lane)
		out <- prometheus.MustNewConstMetric(slotCount, prometheus.GaugeValue, float64(l.Slots), lane)
		out <- prometheus.MustNewConstMetric(slotBusy, prometheus.GaugeValue, float64(l.Busy), lane)
		out <- prometheus.MustNewConstMetric(slotTime, prometheus.CounterValue, l.BusyTime.Seconds(), lane)
		out <- prometheus.MustNewConstMetric(slotAhead, prometheus.GaugeValue, float64(l.Prefetched), lane)
	}
}
